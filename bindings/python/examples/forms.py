"""Forms and files."""

import io

import eyas

with eyas.Client(base_url="https://localhost:8443", verify="ca.pem", cookies={"session": "1"}) as client:
    form = client.post("/echo", data={"tags": ["a", "b"]}, files={"f": ("a.txt", io.BytesIO(b"x"), "text/plain")})
    assert form.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert client.post("/echo", data={"tags": ["a", "b"], "new": True}).text == "tags=a&tags=b&new=true"
