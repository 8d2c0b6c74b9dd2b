"""What the program's tests share: running it, reading safetensors without libraries, finding models and fixtures."""
import array
import json
import os
import pathlib
import struct
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("DRIFTWOOD_PROGRAM", ROOT / "build/release/driftwood"))
GUESTS = PROGRAM.parent / "guests"


def fixtures():
    folder = pathlib.Path(os.environ.get("DRIFTWOOD_FIXTURES") or ROOT.parent / "shared/fixtures")
    if not folder.is_dir():
        raise unittest.SkipTest("no fixtures: ../shared/fixtures is absent and DRIFTWOOD_FIXTURES is not set")
    return folder


def fixture_model(name):
    folder = os.environ.get("DRIFTWOOD_FIXTURE_MODELS")
    if not folder or not (pathlib.Path(folder) / name).is_dir():
        raise unittest.SkipTest(f"no fixture model {name}: DRIFTWOOD_FIXTURE_MODELS is not set (make test sets it)")
    return pathlib.Path(folder) / name


def smollm2():
    path = os.environ.get("DRIFTWOOD_SMOLLM2")
    if not path or not os.path.exists(path):
        raise unittest.SkipTest("no default model: DRIFTWOOD_SMOLLM2 is not set (make test sets it)")
    return path


def run(*args, stdin=None, env=None, check=True, timeout=600):
    result = subprocess.run([str(PROGRAM), *map(str, args)], input=stdin, capture_output=True, timeout=timeout,
                            env={**os.environ, **(env or {})}, text=isinstance(stdin, str) or stdin is None, errors="replace" if isinstance(stdin, str) or stdin is None else None)
    if check and result.returncode != 0:
        raise AssertionError(f"driftwood {' '.join(map(str, args))}: exit {result.returncode}\n{result.stderr}")
    return result


TYPES = {"F32": "f", "I64": "q", "I32": "i"}


def read_safetensors(path):
    """{name: (shape, array.array)} for F32, I64 and I32 tensors."""
    with open(path, "rb") as f:
        length, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    out = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        values = array.array(TYPES[t["dtype"]])
        values.frombytes(data[begin:end])
        out[name] = (t["shape"], values)
    return out


def write_ids(path, ids):
    body = array.array("q", ids).tobytes()
    header = json.dumps({"ids": {"dtype": "I64", "shape": [len(ids)], "data_offsets": [0, len(body)]}}).encode()
    header += b" " * (-len(header) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(header)) + header + body)


def cpu_isas():
    """Instruction sets that this machine can run, best last."""
    flags = set()
    try:
        for line in open("/proc/cpuinfo"):
            if line.startswith(("flags", "Features")):
                flags = set(line.split())
                break
    except OSError:
        pass
    isas = ["ref"]
    if {"avx2", "fma", "f16c"} <= flags:
        isas.append("avx2")
    if {"avx2", "fma", "f16c", "avx_vnni"} <= flags:
        isas.append("avxvnni")
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"} <= flags:
        isas.append("avx512")
    if {"asimd", "asimddp"} <= flags:
        isas.append("neon")
    return isas
