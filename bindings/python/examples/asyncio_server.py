"""A server for asyncio, and its client."""

import asyncio

import eyas

identity = eyas.ServerIdentity.self_signed("127.0.0.1")  # or ServerIdentity("cert.pem", "key.pem")
with open("own.pem", "w") as file:
    file.write(identity.certificate_pem)


async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.read()).upper())
    await writer.drain()
    writer.close()


async def main() -> None:
    server = await eyas.start_server(shout, "127.0.0.1", identity=identity)
    async with server:
        reader, writer = await eyas.open_connection(*server.address, verify="own.pem")
        writer.write(b"hello")
        writer.write_eof()
        assert await reader.read() == b"HELLO"
        writer.close()
        await writer.wait_closed()


asyncio.run(main())
