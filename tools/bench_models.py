#!/usr/bin/env python3
"""The models that the benchmarks need beside the default one, made once and kept in the cache; prints a path each.

  tools/bench_models.py smollm2-q8_0 llama1b-q4_0

  smollm2-q4_0, smollm2-q8_0, smollm2-bf16
      the default model in another weight format, by llama.cpp's own llama-quantize (every matrix in that format)
  llama1b-q4_0, llama1b-q4_1
      the shape of Llama 3.2 1B (16 layers, width 2,048, 32 query and 8 KV heads of 64, feed-forward 8,192, 128,256
      tokens, embeddings tied) with random codes and one small scale: speed does not depend on values, and the real
      weights are not to be had without an account
"""

import argparse
import os
import random
import struct

import cache_folder
import peer_build
from bench_common import guarded, note, output_of, run_shown

SMOLLM2 = {"smollm2-q4_0": "Q4_0", "smollm2-q8_0": "Q8_0", "smollm2-bf16": "BF16"}
LAYERS, WIDTH, HEADS, KV_HEADS, HEAD_DIM, FEED_FORWARD, TOKENS = 16, 2048, 32, 8, 64, 8192, 128256
# Of GGUF: value types, tensor types, and the bytes of a block of 32 weights.
UINT32, FLOAT32, STRING = 4, 6, 8
F32, Q4_0, Q4_1 = 0, 2, 3
LLAMA1B = {"llama1b-q4_0": Q4_0, "llama1b-q4_1": Q4_1}
BLOCK_BYTES = {Q4_0: 18, Q4_1: 20}
ALIGNMENT = 32
PATTERN_BLOCKS = 4096


def folder():
    return cache_folder.path("bench-models")


def default_model():
    """Fetched if it is not there yet; that takes long, so the script's messages are shown."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fetch_model.sh")
    run_shown([script])
    return output_of([script]).strip()


def requantised(name, target, options):
    quantize = peer_build.program(options.peer_version, options.jobs, "llama-quantize")
    output_of([quantize, "--allow-requantize", "--pure", default_model(), target, SMOLLM2[name]])


def tensors(kind):
    """(name, dimensions with the inner one first, type) in the order of the file."""
    kv_width = KV_HEADS * HEAD_DIM
    yield "token_embd.weight", (WIDTH, TOKENS), kind
    for layer in range(LAYERS):
        for name, dims, of in (("attn_norm", (WIDTH,), F32), ("attn_q", (WIDTH, WIDTH), kind),
                               ("attn_k", (WIDTH, kv_width), kind), ("attn_v", (WIDTH, kv_width), kind),
                               ("attn_output", (WIDTH, WIDTH), kind), ("ffn_norm", (WIDTH,), F32),
                               ("ffn_gate", (WIDTH, FEED_FORWARD), kind), ("ffn_up", (WIDTH, FEED_FORWARD), kind),
                               ("ffn_down", (FEED_FORWARD, WIDTH), kind)):
            yield f"blk.{layer}.{name}.weight", dims, of
    yield "output_norm.weight", (WIDTH,), F32


def size_of(dims, kind):
    count = 1
    for dim in dims:
        count *= dim
    return count * 4 if kind == F32 else count // 32 * BLOCK_BYTES[kind]


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def metadata(name):
    values = [("general.architecture", "llama"), ("general.name", name), ("general.alignment", ALIGNMENT),
              ("llama.block_count", LAYERS), ("llama.context_length", 131072), ("llama.embedding_length", WIDTH),
              ("llama.feed_forward_length", FEED_FORWARD), ("llama.attention.head_count", HEADS),
              ("llama.attention.head_count_kv", KV_HEADS), ("llama.rope.dimension_count", HEAD_DIM),
              ("llama.rope.freq_base", 500000.0), ("llama.attention.layer_norm_rms_epsilon", 1e-5),
              ("llama.vocab_size", TOKENS), ("tokenizer.ggml.model", "none")]
    out = b""
    for key, value in values:
        out += gguf_string(key)
        if isinstance(value, str):
            out += struct.pack("<I", STRING) + gguf_string(value)
        elif isinstance(value, float):
            out += struct.pack("<If", FLOAT32, value)
        else:
            out += struct.pack("<II", UINT32, value)
    return len(values), out


def pattern(kind, generator):
    """PATTERN_BLOCKS blocks: scale 0.004, for Q4_1 the minimum that centres the codes, and random codes."""
    head = struct.pack("<e", 0.004) + (struct.pack("<e", -0.03) if kind == Q4_1 else b"")
    return b"".join(head + generator.randbytes(16) for _ in range(PATTERN_BLOCKS))


def random_llama(name, target):
    kind = LLAMA1B[name]
    generator = random.Random(1)
    patterns = [pattern(kind, generator) for _ in range(8)]
    listed = list(tensors(kind))
    count, keys = metadata(name)
    infos, offset = b"", 0
    for tensor, dims, of in listed:
        infos += gguf_string(tensor) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        infos += struct.pack("<IQ", of, offset)
        offset += -(-size_of(dims, of) // ALIGNMENT) * ALIGNMENT
    with open(target, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(listed), count) + keys + infos)
        out.write(bytes(-out.tell() % ALIGNMENT))
        for _, dims, of in listed:
            left = size_of(dims, of)
            if of == F32:
                out.write(struct.pack("<f", 1.0) * (left // 4))
                left = 0
            while left > 0:
                chunk = generator.choice(patterns)[:left]
                out.write(chunk)
                left -= len(chunk)
            out.write(bytes(-out.tell() % ALIGNMENT))


def ensure(name, options):
    """The path of the model `name`, made if it is not there yet."""
    target = os.path.join(folder(), name + ".gguf")
    if os.path.isfile(target):
        return target
    with cache_folder.locked(folder()), cache_folder.scratch(folder()) as scratch:
        if not os.path.isfile(target):
            note(f"making {target}")
            made = os.path.join(scratch, name + ".gguf")
            if name in SMOLLM2:
                requantised(name, made, options)
            else:
                random_llama(name, made)
            os.replace(made, target)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=[*SMOLLM2, *LLAMA1B], metavar="NAME")
    peer_build.add_options(parser)
    options = parser.parse_args()
    for name in options.names:
        print(ensure(name, options))


if __name__ == "__main__":
    guarded(main)
