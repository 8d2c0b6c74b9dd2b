"""A snapshot file with another label: its header is changed and its hash made anew (docs/formats/snapshot.md)."""

IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]


def blake3_compress(chaining, block, counter, length, flags):
    m = [int.from_bytes(block[i:i + 4], "little") for i in range(0, 64, 4)]
    v = chaining + IV[:4] + [counter, 0, length, flags]

    def mix(a, b, c, d, x, y):
        for word, turns in ((x, (16, 12)), (y, (8, 7))):
            v[a] = (v[a] + v[b] + word) & 0xFFFFFFFF
            v[d] ^= v[a]
            v[d] = (v[d] >> turns[0] | v[d] << 32 - turns[0]) & 0xFFFFFFFF
            v[c] = (v[c] + v[d]) & 0xFFFFFFFF
            v[b] ^= v[c]
            v[b] = (v[b] >> turns[1] | v[b] << 32 - turns[1]) & 0xFFFFFFFF
    for _ in range(7):
        for i in range(4):
            mix(i, 4 + i, 8 + i, 12 + i, m[2 * i], m[2 * i + 1])
        for i in range(4):
            mix(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[8 + 2 * i], m[9 + 2 * i])
        m = [m[i] for i in ORDER]
    return [v[i] ^ v[i + 8] for i in range(8)]


def blake3_of_units(data):
    """Of 2^n KiB, n > 0: chunks of 1 KiB under a whole binary tree."""
    level = []
    for index in range(len(data) // 1024):
        value = IV
        for at in range(16):
            block = data[index * 1024 + at * 64:][:64]
            value = blake3_compress(value, block, index, 64, (at == 0) | (at == 15) << 1)
        level.append(b"".join(word.to_bytes(4, "little") for word in value))
    while len(level) > 1:
        root = 8 if len(level) == 2 else 0
        pairs = [blake3_compress(IV, level[i] + level[i + 1], 0, 64, 4 | root) for i in range(0, len(level), 2)]
        level = [b"".join(word.to_bytes(4, "little") for word in value) for value in pairs]
    return level[0].hex().encode()


def relabel(path, old, new):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little") + 8
    at = data.index(b'"header_hash":"') + len(b'"header_hash":"')

    def hash_of(header):
        return blake3_of_units(header[:at] + b"0" * 64 + header[at + 64:])
    header = data[:size]
    assert size & (size - 1) == 0 and hash_of(header) == header[at:at + 64] and header.count(old) == 1
    grown = len(new) - len(old)
    assert header.endswith(b" " * grown)
    header = header.replace(old, new)[:size]
    path.write_bytes(header[:at] + hash_of(header) + header[at + 64:] + data[size:])
