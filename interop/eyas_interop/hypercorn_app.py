"""The application that Hypercorn serves: each response names the HTTP version of its request."""


async def app(scope, receive, send):
    """An ASGI application with one route."""
    if scope["type"] == "lifespan":
        while True:
            event = (await receive())["type"]
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return
    if scope["type"] != "http":
        return
    size = 0
    more = True
    while more:
        event = await receive()
        size += len(event.get("body", b""))
        more = event.get("more_body", False)
    body = f"hypercorn HTTP/{scope['http_version']} {scope['method']} {size}\n".encode()
    headers = [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
