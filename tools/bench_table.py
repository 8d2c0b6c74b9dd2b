"""Tables of tools/bench_peers.py: figures of one model for reading, ratios of all models in Markdown.

A result is what bench_peers.measure() gives for a model and a number of threads:
  {"model", "threads", "prompt_tokens", "generate_tokens", "bytes_per_token", "macs_per_token": {"int8", "f32"} or None,
   "peaks": {"read_gb_per_s", "int8_gmac_per_s", "f32_gmac_per_s"} or None,
   "llama.cpp": {"prompt", "prompt_spread", "generate", "generate_spread", "size"}, "driftwood": the same or absent}
"""

import os

from bench_common import plural

PROGRAMS = ("llama.cpp", "driftwood")


def read_gb_per_s(result, program):
    return result[program]["generate"] * result["bytes_per_token"] / 1e9


def read_share(result, program):
    """Of the bandwidth that as many threads reach when they only read."""
    peaks = result["peaks"]
    return read_gb_per_s(result, program) / peaks["read_gb_per_s"] if peaks else None


def gmac_per_s(result, program):
    macs = result["macs_per_token"]
    return result[program]["prompt"] * sum(macs.values()) / 1e9 if macs else None


def mac_share(result, program):
    """The part of a second that a second's multiply-accumulates would take at the machine's peak: a file may have
    quantised and dense matrices, each kind has its own."""
    macs, peaks = result["macs_per_token"], result["peaks"]
    if not macs or not peaks:
        return None
    seconds_per_token = sum(macs[kind] / (1e9 * peaks[kind + "_gmac_per_s"]) for kind in ("int8", "f32"))
    return result[program]["prompt"] * seconds_per_token


def ratio(result, key):
    """Driftwood's speed over llama.cpp's."""
    return result["driftwood"][key] / result["llama.cpp"][key] if "driftwood" in result else None


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def percent(value):
    return "-" if value is None else f"{100 * value:.0f} %"


def name_of(model):
    return os.path.basename(model).removesuffix(".gguf")


def model_table(results, rounds, repeat):
    """Figures of one model, the same prompt and generation in all `results`."""
    first = results[0]
    pp, tg = f"pp{first['prompt_tokens']}", f"tg{first['generate_tokens']}"
    lines = [f"{name_of(first['model'])}: tokens per second, median of {plural(rounds, 'round')} of {repeat} (spread "
             "over the rounds)",
             f"{'threads':>7}  {'program':<10} {pp:>18} {'GMAC/s':>8} {'of peak':>8} {tg:>18} {'MB weights':>11} "
             f"{'GB/s read':>10} {'of peak':>8}"]
    for result in results:
        for program in PROGRAMS:
            row = result.get(program)
            if row:
                lines.append(f"{result['threads']:>7}  {program:<10} "
                             f"{row['prompt']:>9.1f} ±{100 * row['prompt_spread']:>5.1f} % "
                             f"{number(gmac_per_s(result, program), 1):>8} {percent(mac_share(result, program)):>8} "
                             f"{row['generate']:>9.1f} ±{100 * row['generate_spread']:>5.1f} % "
                             f"{row['size'] / 1e6:>11.1f} {read_gb_per_s(result, program):>10.1f} "
                             f"{percent(read_share(result, program)):>8}")
        if "driftwood" in result:
            lines.append(f"{result['threads']:>7}  {'ratio':<10} {ratio(result, 'prompt'):>9.2f} {'':>26} "
                         f"{ratio(result, 'generate'):>9.2f}")
        if result["peaks"]:
            peaks = result["peaks"]
            lines.append(f"{result['threads']:>7}  {'peak':<10} int8 {peaks['int8_gmac_per_s']:.0f}, f32 "
                         f"{peaks['f32_gmac_per_s']:.0f} GMAC/s; read {peaks['read_gb_per_s']:.1f} GB/s")
    return "\n".join(lines)


def summary_row(result):
    def both(figure):
        return " / ".join(figure(program) for program in PROGRAMS if program in result)

    cells = [name_of(result["model"]), str(result["threads"])]
    for key, tokens, share in (("prompt", result["prompt_tokens"], mac_share),
                               ("generate", result["generate_tokens"], read_share)):
        cells += [str(tokens), both(lambda program, key=key: f"{result[program][key]:.1f}"),
                  number(ratio(result, key), 2), both(lambda program, share=share: percent(share(result, program)))]
    return "| " + " | ".join(cells) + " |"


def summary(results):
    """Markdown, a line for each model and number of threads."""
    programs = " / ".join(program for program in PROGRAMS if program in results[0])
    head = ["model", "threads", "prompt", f"tok/s, {programs}", "ratio", "of the MAC peak", "generate",
            f"tok/s, {programs}", "ratio", "of the read peak"]
    return "\n".join(["| " + " | ".join(head) + " |", "| --- |" + " --: |" * (len(head) - 1),
                      *(summary_row(result) for result in results)])
