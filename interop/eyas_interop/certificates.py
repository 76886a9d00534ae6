"""A certificate authority for the run, and its certificates."""

import base64
import datetime
import hashlib
import ipaddress
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFETIME = datetime.timedelta(days=2)


class Authority:
    """Issues certificates that clients accept with `--cacert ca.pem`."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "eyas interop")])
        certificate = (
            _builder(self.name, self.name, self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(sign=True), critical=True)
            .sign(self.key, hashes.SHA256())
        )
        self.file = directory / "ca.pem"
        self.file.write_bytes(_pem(certificate))

    def issue(self, label: str, names: list[str]) -> "Identity":
        """Issues a certificate for DNS names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        certificate = (
            _builder(subject, self.name, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(_alternatives(names)), critical=False)
            .add_extension(_key_usage(sign=False), critical=True)
            .sign(self.key, hashes.SHA256())
        )
        chain, secret = self.directory / f"{label}.pem", self.directory / f"{label}.key"
        chain.write_bytes(_pem(certificate))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        secret.chmod(0o600)
        return Identity(chain, secret, _spki(key))


class Identity:
    """A certificate, its key, and the hash by which Chromium identifies it."""

    def __init__(self, chain: pathlib.Path, key: pathlib.Path, spki: str) -> None:
        self.chain = chain
        self.key = key
        self.spki = spki


def _builder(subject: x509.Name, issuer: x509.Name, key) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
    )


def _alternatives(names: list[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for name in names:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return found


def _key_usage(sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=sign, crl_sign=sign,
        encipher_only=False, decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _spki(key) -> str:
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(hashlib.sha256(public).digest()).decode()


def spki_of(pem: bytes) -> str:
    """Returns the hash by which Chromium identifies a certificate."""
    return _spki(x509.load_pem_x509_certificate(pem))
