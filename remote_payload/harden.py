"""The first thing a job does: close the ways by which memory could reach a disk. Standard library only.

No core dump, no reading by other processes of this user, nothing swapped where that can be had, every cache
and temporary folder in memory, every library told to stay offline and silent. What could not be had is
returned as a word and becomes a record; it is never passed over.
"""
from __future__ import annotations

import atexit
import ctypes
import os
import resource
import shutil
import tempfile
from pathlib import Path

SET_DUMPABLE, CAP_IPC_LOCK = 4, 14
LOCK_CURRENT, LOCK_FUTURE, LOCK_ONFAULT = 1, 2, 4
OFFLINE = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1", "DO_NOT_TRACK": "1", "WANDB_DISABLED": "true", "TQDM_DISABLE": "1",
    "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "0",
}
IN_MEMORY = ("TMPDIR", "HOME", "HF_HOME", "HF_DATASETS_CACHE", "HF_MODULES_CACHE", "XDG_CACHE_HOME")
CODE_ONLY = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  the kernel's tmpfs; a folder of our own is made in it
SCRATCH_PREFIX = "sealtune-"      # the wipe looks for what a killed job left there


def harden() -> str:
    """Makes this process unreadable and unswappable as far as the node allows.

    Returns one word for the record: locked, no-swap (nothing to be swapped to) or swap (it could happen)."""
    libc = ctypes.CDLL(None)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc.prctl(SET_DUMPABLE, 0, 0, 0, 0)
    os.umask(0o077)
    if _may_lock() and libc.mlockall(LOCK_CURRENT | LOCK_FUTURE | LOCK_ONFAULT) == 0:
        return "locked"
    return "swap" if _swap_is_active() else "no-swap"


def enclose(out: Path) -> str:
    """Points every cache at memory and every library at nothing. Before any heavy import.

    Compiled GPU kernels hold no data and need a file system that may execute, so they go beside the results.
    Returns memory, or disk where the node has no tmpfs of ours to write to."""
    in_memory = _is_tmpfs(SHARED_MEMORY)
    scratch = Path(tempfile.mkdtemp(prefix=f"{SCRATCH_PREFIX}{os.getpid()}-", dir=SHARED_MEMORY if in_memory else out))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    os.environ.update(OFFLINE)
    os.environ.update({name: str(scratch) for name in IN_MEMORY})
    os.environ.update({name: str(out / "kernels") for name in CODE_ONLY})
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]   # one GPU a job
    tempfile.tempdir = str(scratch)
    return "memory" if in_memory else "disk"


def _may_lock() -> bool:
    """A limit that is neither zero nor endless would let the call succeed and break later allocations."""
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY:
        return True
    status = _read("/proc/self/status")
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> CAP_IPC_LOCK & 1)


def _swap_is_active() -> bool:
    return len(_read("/proc/swaps").splitlines()) > 1


def _is_tmpfs(folder: Path) -> bool:
    mounts = (line.split() for line in _read("/proc/mounts").splitlines())
    kinds = [fields[2] for fields in mounts if len(fields) > 2 and fields[1] == str(folder)]
    return kinds[-1:] == ["tmpfs"] and os.access(folder, os.W_OK | os.X_OK)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
