"""`hold completion`: a completion script for your shell."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser

SUMMARY = "print a completion script for bash, zsh or fish"


def parser() -> Parser:
    parser = verb_parser(
        "completion",
        "Print a completion script. It is made from the verbs' own options, so it fits the version "
        "that printed it; session names are asked of the host as you type.",
        "  source <(hold completion bash)                     in ~/.bashrc\n"
        "  source <(hold completion zsh)                      in ~/.zshrc, after compinit\n"
        "  hold completion fish > ~/.config/fish/completions/hold.fish",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")
    return parser


def run(options: Options) -> None:
    from holdfast.cli.completion_script import script

    print(script(options.shell), end="")
