"""asyncio's reader and writer, after a race."""

import asyncio

import eyas


async def main() -> None:
    reader, writer = await eyas.open_connection(
        "localhost", 8443, transports=["tcp"], alpn=["http/1.1"], verify="ca.pem"
    )
    print(writer.get_extra_info("info"))
    writer.write(b"GET /bytes/10 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    await writer.drain()
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    writer.close()
    await writer.wait_closed()


asyncio.run(main())
