#!/usr/bin/env python3
"""Lists a snapshot file (docs/formats/snapshot.md): identity, sections, sizes; shows tensors, K and V as arrays.

Usage: tools/read_snapshot.py FILE [--json]
       tools/read_snapshot.py FILE --tensor SECTION.NAME [--limit 16]
       tools/read_snapshot.py FILE --kv SECTION.NAME [--block 0] [--layer 0] [--head 0]
       tools/read_snapshot.py FILE --verify          (needs the package blake3)

Reads tensors through the package safetensors (with numpy) if it is installed, else by itself. Exit code 1 if the
file is not a snapshot of format 0 or its structure is broken.
"""
import argparse
import json
import math
import pathlib
import struct
import sys

UNIT = 65536
START = '{"__metadata__":{"driftwood_snapshot":"'
HASH_START = '","header_hash":"'
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1,
         "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}
CODES = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b",
         "U64": "Q", "U32": "I", "U16": "H", "U8": "B", "BOOL": "?"}
IDENTITY = ["model_fingerprint", "module_hash", "abi", "numerics_id", "kv_format", "block_geometry", "rope"]
KV_LAYOUT = "[block][layer](k[head][dim][token],v[head][token][dim])"


class Broken(Exception):
    pass


def padded(size):
    return (size + UNIT - 1) // UNIT * UNIT


def stored_shape(dtype, shape):
    size = math.prod(shape) * SIZES[dtype]
    whole = padded(size)
    if whole == size:
        return list(shape)
    if shape and whole % (size // shape[0]) == 0:
        return [whole // (size // shape[0])] + list(shape[1:])
    return [whole // SIZES[dtype]]


class Snapshot:
    def __init__(self, path):
        self.path = path
        self.size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(8)
            if file.read(len(START)).decode("ascii", "replace") != START:
                raise Broken("is empty, truncated or not a snapshot")
            file.seek(8)
            length = struct.unpack("<Q", prefix)[0]
            if length + 8 > min(self.size, 16 << 20):
                raise Broken(f"its header claims {length} bytes, the file has {self.size}")
            self.head = prefix + file.read(length)
        text = self.head[8:].decode("utf-8")
        number = text[len(START):].split('"', 1)[0]
        if number != "0":
            raise Broken(f"is of snapshot format {number}, this program reads format 0")
        if (length + 8) % UNIT:
            raise Broken("its data does not begin on 64 KiB")
        table = json.loads(text)
        self.metadata = table.pop("__metadata__")
        self.sections = json.loads(self.metadata["sections"])
        self.notes = json.loads(self.metadata["notes"])
        self.tensors = {}
        self.place(table, length + 8)

    def place(self, table, start):
        """Walks the directory; every tensor must stand in the table where it should."""
        at = 0
        for section in self.sections:
            for tensor in section["tensors"]:
                name = f"{section['name']}.{tensor['name']}"
                entries = [(name, tensor["dtype"], tensor["shape"])]
                true_bytes = math.prod(tensor["shape"]) * SIZES[tensor["dtype"]]
                if "piece_bytes" in tensor:
                    entries.append((name + ".hashes", "U8", [-(-true_bytes // tensor["piece_bytes"]), 32]))
                for full, dtype, shape in entries:
                    size = math.prod(shape) * SIZES[dtype]
                    wanted = {"dtype": dtype, "shape": stored_shape(dtype, shape), "data_offsets": [at, at + padded(size)]}
                    if table.pop(full, None) != wanted:
                        raise Broken(f"tensor '{full}' is not what the directory says")
                    self.tensors[full] = {"dtype": dtype, "shape": shape, "offset": start + at, "bytes": size,
                                          "section": section, "entry": tensor}
                    at += padded(size)
        if table:
            raise Broken(f"tensor '{next(iter(table))}' is not in the directory")
        if start + at != self.size:
            raise Broken(f"the file has {self.size} bytes, its tensors need {start + at}")

    def tensor(self, name):
        if name not in self.tensors:
            raise Broken(f"has no tensor '{name}'; it has {', '.join(self.tensors)}")
        return self.tensors[name]

    def raw(self, name):
        t = self.tensor(name)
        with self.path.open("rb") as file:
            file.seek(t["offset"])
            return file.read(t["bytes"])

    def values(self, name):
        """All values of a tensor, flat and without padding."""
        t = self.tensor(name)
        count = math.prod(t["shape"])
        if t["dtype"] != "BF16":
            try:
                from safetensors import safe_open
                with safe_open(str(self.path), framework="np") as file:
                    return file.get_tensor(name).reshape(-1)[:count]
            except ImportError:
                return struct.unpack(f"<{count}{CODES[t['dtype']]}", self.raw(name))
        words = struct.unpack(f"<{count}H", self.raw(name))
        return struct.unpack(f"<{count}f", b"".join(struct.pack("<I", w << 16) for w in words))

    def kv(self, name, block, layer, head):
        """K as rows of dims by tokens, V as rows of tokens by dims."""
        t = self.tensor(name)
        if t["entry"]["layout"] != KV_LAYOUT:
            raise Broken(f"tensor '{name}' has the layout {t['entry']['layout']}, not {KV_LAYOUT}")
        facts = t["section"]["attributes"]
        layers, heads, dims, tokens = (int(facts[k]) for k in ("layers", "kv_heads", "head_dim", "block_tokens"))
        if not (0 <= block < t["shape"][0] and 0 <= layer < layers and 0 <= head < heads):
            raise Broken(f"it has {t['shape'][0]} blocks, {layers} layers, {heads} heads")
        element = SIZES[t["dtype"]]
        half = -(-heads * dims * tokens * element // 64) * 64 // element
        at = block * t["shape"][1] + layer * 2 * half + head * dims * tokens
        values = self.values(name)
        k = [[float(x) for x in values[at + d * tokens:at + (d + 1) * tokens]] for d in range(dims)]
        at += half
        v = [[float(x) for x in values[at + i * dims:at + (i + 1) * dims]] for i in range(tokens)]
        return k, v

    def verify(self):
        try:
            from blake3 import blake3
        except ImportError as error:
            raise Broken("--verify needs the package blake3") from error
        at = 8 + len(START) + 1 + len(HASH_START)
        if blake3(self.head[:at] + b"0" * 64 + self.head[at + 64:]).hexdigest() != self.metadata["header_hash"]:
            raise Broken("header: damaged")
        for name, t in self.tensors.items():
            if t["entry"]["name"] != name[len(t["section"]["name"]) + 1:]:
                continue  # piece hashes: checked with their tensor
            data = self.raw(name)
            piece = t["entry"].get("piece_bytes")
            if piece:
                hashes = self.raw(name + ".hashes")
                for i in range(0, len(data), piece):
                    if blake3(data[i:i + piece]).digest() != hashes[i // piece * 32:][:32]:
                        raise Broken(f"tensor '{name}', piece {i // piece}: damaged")
                data = hashes
            if blake3(data).hexdigest() != t["entry"]["blake3"]:
                raise Broken(f"tensor '{name}': damaged")


def listing(s):
    return {
        "format": 0,
        "hash": s.metadata["header_hash"],
        "parent": s.metadata["parent"],
        "created_ns": int(s.metadata["created_ns"]),
        "identity": {key: s.metadata[key] for key in IDENTITY},
        "notes": s.notes,
        "file_bytes": s.size,
        "sections": [
            {"name": sec["name"], "kind": sec["kind"], "attributes": sec["attributes"],
             "tensors": [{"name": t["name"], "dtype": t["dtype"], "shape": t["shape"], "layout": t["layout"],
                          "bytes": s.tensors[f"{sec['name']}.{t['name']}"]["bytes"],
                          "offset": s.tensors[f"{sec['name']}.{t['name']}"]["offset"],
                          "piece_bytes": t.get("piece_bytes", 0)} for t in sec["tensors"]]}
            for sec in s.sections],
    }


def print_listing(facts):
    print(f"snapshot {facts['hash']}  format 0  {facts['file_bytes']:,} bytes")
    for key in ("parent", "created_ns"):
        print(f"  {key:18} {facts[key] or '-'}")
    for group in (facts["identity"], facts["notes"]):
        for key, value in group.items():
            print(f"  {key:18} {value or '-'}")
    for section in facts["sections"]:
        attributes = " ".join(f"{k}={v}" for k, v in section["attributes"].items())
        print(f"{section['name']} ({section['kind']}) {attributes}".rstrip())
        for t in section["tensors"]:
            pieces = f"  hashed by {t['piece_bytes']:,}" if t["piece_bytes"] else ""
            print(f"  {t['name']:18} {t['dtype']} {t['shape']}  {t['bytes']:,} bytes at {t['offset']:,}  {t['layout']}{pieces}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tensor")
    parser.add_argument("--limit", type=int, default=16)
    parser.add_argument("--kv")
    for place in ("block", "layer", "head"):
        parser.add_argument(f"--{place}", type=int, default=0)
    parser.add_argument("--verify", action="store_true")
    args = parser.parse_args()
    try:
        s = Snapshot(args.file)
        if args.verify:
            s.verify()
        if args.kv:
            k, v = s.kv(args.kv, args.block, args.layer, args.head)
            print(json.dumps({"k_dim_token": k, "v_token_dim": v}))
        elif args.tensor:
            values = list(s.values(args.tensor)[:args.limit])
            print(json.dumps({"dtype": s.tensor(args.tensor)["dtype"], "shape": s.tensor(args.tensor)["shape"],
                              "values": [x.item() if hasattr(x, "item") else x for x in values]}))
        elif args.json:
            print(json.dumps(listing(s), indent=2))
        else:
            print_listing(listing(s))
    except BrokenPipeError:
        return 0
    except OSError as error:
        print(f"{args.file}: {error.strerror}", file=sys.stderr)
        return 1
    except (Broken, KeyError, TypeError, ValueError) as error:
        print(f"{args.file}: {error if isinstance(error, Broken) else 'a broken snapshot: ' + repr(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
