"""An adapter for a session of requests, with bodies that stream both ways."""

import requests

import eyas.requests

with requests.Session() as session:
    session.mount("https://", eyas.requests.Adapter(verify="ca.pem"))
    response = session.get("https://localhost:8443/bytes/100")
    print(response.status_code, eyas.requests.info(response).transport)

    # Bodies stream both ways.
    chunks = (b"x" * 1000 for _ in range(100))
    with session.post("https://localhost:8443/echo", data=chunks, stream=True) as response:
        assert sum(len(chunk) for chunk in response.iter_content(8192)) == 100_000
