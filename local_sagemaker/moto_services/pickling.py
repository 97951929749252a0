"""How moto's objects become bytes on disk, where pickle does not know by itself."""

from __future__ import annotations

import pickle
import threading
from typing import get_args

from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

LOCKS = (type(threading.Lock()), type(threading.RLock()))
PRIVATE_KEYS = get_args(PrivateKeyTypes)


class StatePickler(pickle.Pickler):
    def __init__(self, stream) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)

    def reducer_override(self, value: object) -> object:
        if isinstance(value, LOCKS):
            return threading.RLock if isinstance(value, LOCKS[1]) else threading.Lock, ()
        if isinstance(value, PRIVATE_KEYS):  # KMS
            der = value.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
            return _restore_private_key, (der,)
        return NotImplemented


def _restore_private_key(der: bytes) -> PrivateKeyTypes:
    return load_der_private_key(der, None)
