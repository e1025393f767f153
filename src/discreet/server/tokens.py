# SPDX-License-Identifier: Apache-2.0
"""Tokens, one-time links and session ids: made of 256 random bits, and stored only as keyed hashes.

**Guarantee.** Whoever reads the store learns no token, link or session id, and cannot make one
without the secret of the server, which lies elsewhere. A token is looked up by its hash, so the
time that this takes tells nothing about other tokens.

Why no slow hash: it protects secrets that can be guessed. These cannot be, and a slow hash would
let strangers use up the processors.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import zlib
from pathlib import Path

from discreet.server.config import settings_error

__all__ = ["Keyring", "looks_like_token", "new_token"]

_PREFIX = "dscr_"
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def new_token() -> str:
    """A token of 256 random bits, with a checksum by which scanners find it where it leaked."""
    body = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    return f"{_PREFIX}{body}{_checksum(body)}"


def looks_like_token(text: str) -> bool:
    """Whether a text has the form of a token.

    >>> looks_like_token(new_token()), looks_like_token("dscr_secret")
    (True, False)
    """
    body, check = text.removeprefix(_PREFIX)[:-6], text[-6:]
    return text.startswith(_PREFIX) and len(body) == 43 and hmac.compare_digest(check, _checksum(body))


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode("utf-8", "surrogatepass")), ""
    for _ in range(6):
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


class Keyring:
    """The secret of a server, 32 bytes in a file that nobody else may read, and hashes under it."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @classmethod
    def at(cls, place: Path) -> Keyring:
        """The secret in a file; made if there is none, and refused if others may read it."""
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(32))
        if os.name == "posix" and place.stat().st_mode & 0o077:
            raise settings_error(
                f"others can read {place}.",
                f"chmod 600 {place}",
                "whoever has it can make tokens for themselves.",
            )
        secret = place.read_bytes()
        if len(secret) != 32:
            raise settings_error(
                f"{place} does not hold 32 bytes.", f"put {place.name} back from a backup, or remove it"
            )
        return cls(secret)

    def hash_of(self, kind: str, text: str) -> str:
        """The keyed hash of a token, a link or a session id; `kind` keeps them apart."""
        person = kind.encode()[:16]
        words = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(words, digest_size=32, key=self._secret, person=person).hexdigest()
