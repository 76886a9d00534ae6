"""Two addresses of this host for the peer: what one path loses, the other one carries."""

import eyas.sctp
from eyas.sctp import sync

config = eyas.sctp.Config(multipath=True)
with sync.listen("127.0.0.1", addresses=["127.0.0.2"], udp_port=0, config=config) as listener:
    with sync.connect(
        "127.0.0.1", listener.port, udp_port=listener.udp_port, config=config, timeout=10
    ) as association:
        assert {path.remote for path in association.paths} == {"127.0.0.1", "127.0.0.2"}
        with listener.accept(10) as peer:
            association.send(b"ping")
            message = peer.receive()
            assert message is not None and message.data == b"ping"
