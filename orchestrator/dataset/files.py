"""A file as bytes: plain, gzip or zstd, read once from front to end and hashed on the way. Knows nothing about rows."""
from __future__ import annotations

import gzip
import hashlib
import io
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..domain.names import Digest
from ..errors import BadInput

BLOCK = 1 << 20
HEAD = 4096
PIECE = 16 * 1024                        # of packed bytes at once, so that little bytes do not fill the memory
GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"


class Hashed(io.RawIOBase):
    """A file that is hashed while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash = file, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        self._hash.update(data)
        buffer[:len(data)] = data
        return len(data)

    def rest(self) -> Digest:
        """The digest of all bytes, read to the end or not."""
        while data := self._file.read(BLOCK):
            self._hash.update(data)
        return Digest("sha256:" + self._hash.hexdigest())


class Zstd(io.RawIOBase):
    """Unpacked zstd, frame by frame. EOFError when the last one is not whole, which the library's reader does not tell."""

    def __init__(self, packed: IO[bytes]) -> None:
        import zstandard

        self._packed, self._new = packed, zstandard.ZstdDecompressor().decompressobj
        self._frame, self._waiting, self._open = self._new(), b"", False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._waiting:
            if self._frame.eof:
                piece, self._frame, self._open = self._frame.unused_data, self._new(), False
            else:
                piece = b""
            if not (piece := piece or self._packed.read(PIECE)):
                if self._open:
                    raise EOFError
                return 0
            self._open, self._waiting = True, self._frame.decompress(piece)
        given = min(len(buffer), len(self._waiting))
        buffer[:given], self._waiting = self._waiting[:given], self._waiting[given:]
        return given


class Bytes:
    """What a file holds, unpacked. `digest` is of the file as it lies there, once `blocks` came to its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.digest = Digest("")

    def head(self) -> bytes:
        """The first bytes, unpacked."""
        with self._told(), self.path.open("rb") as file:
            return self._unpacked(Hashed(file)).read(HEAD)

    def blocks(self, size: int = BLOCK) -> Iterator[bytes]:
        """All bytes, unpacked, in order. BadInput where the file cannot be read or is damaged."""
        with self._told(), self.path.open("rb") as file:
            hashed = Hashed(file)
            plain = self._unpacked(hashed)
            while block := plain.read(size):
                yield block
            self.digest = hashed.rest()

    def _unpacked(self, hashed: Hashed) -> io.BufferedIOBase:
        begin = io.BufferedReader(hashed, BLOCK)
        magic = begin.peek(4)[:4]
        if magic.startswith(GZIP):
            return io.BufferedReader(gzip.GzipFile(fileobj=begin), BLOCK)
        if magic.startswith(ZSTD):
            return io.BufferedReader(Zstd(begin), BLOCK)
        return begin

    @contextmanager
    def _told(self) -> Iterator[None]:
        """A library's word about the file, in ours."""
        try:
            must_be_a_file(self.path)
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
            raise self._damaged(problem) from problem
        except OSError as problem:
            raise BadInput(f"{self.path}: {(problem.strerror or 'cannot be read').lower()}",
                           hint="name the dataset in the run file, relative to it") from problem
        except Exception as problem:     # why: zstandard is imported only where it is met, and so is its error's name
            if type(problem).__name__ != "ZstdError":
                raise
            raise self._damaged(problem) from problem

    def _damaged(self, problem: Exception) -> BadInput:
        how = "ends too early" if isinstance(problem, EOFError) else "is damaged"
        return BadInput(f"{self.path.name}: this packed file {how}", hint="copy it again; the size beside the original's")


def must_be_a_file(path: Path) -> None:
    if not stat.S_ISREG(path.stat().st_mode):
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise BadInput(f"{path}: a dataset is one file, this is {kind}",
                       hint="name the file itself in `dataset:` of the run file")
