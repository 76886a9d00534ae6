"""A server that accepts like a socket, and its client."""

import threading

import eyas

with eyas.create_server(("127.0.0.1", 0)) as listener:

    def serve() -> None:
        connection, peer = listener.accept()
        with connection:
            connection.sendall(b"hello " + peer[0].encode())

    thread = threading.Thread(target=serve)
    thread.start()
    with eyas.create_connection(listener.getsockname(), 10, tls=False) as connection:
        assert connection.recv(100) == b"hello 127.0.0.1"
    thread.join()
