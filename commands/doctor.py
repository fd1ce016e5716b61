"""``askance doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..evaluation.options import load_config
from .check_up import check_up, models_of_config
from .options import load_dotenv
from .output import echo_json

if TYPE_CHECKING:
    from .check_up import Checked


@click.command(name="doctor")
@click.option("--model", "models", multiple=True, help="A model that must work, as provider/model; may be repeated.")
@click.option("--config", type=click.Path(path_type=Path), help="YAML file; the models that it names must work.")
@click.option("--api-base", default=None, help="Address of an OpenAI-compatible server, for openai/NAME.")
@click.option("--offline", is_flag=True, help="Do not ask that server whether it is there.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable result on standard output.")
def command(models: tuple[str, ...], config: Path | None, api_base: str | None, offline: bool, as_json: bool) -> int:
    """Check packages, models, keys, disk and cache, and say what to do. Buys nothing and shows no key.

    Without --model and --config no model is looked at but the embedded ones. Exit code 0: all that is needed works.
    """
    load_dotenv()
    values = load_config(config) if config else {}
    wanted = list(models) or models_of_config(values)
    lines = check_up(wanted, api_base=api_base or values.get("api_base"), connect=not offline)
    failed = [each for each in lines if each.fails]
    if as_json:
        echo_json({"ok": not failed, "checked": [each.to_dict() for each in lines]})
        return int(bool(failed))
    _print(lines)
    if not wanted:
        click.echo("\nNo model was named. To check yours: askance doctor --model provider/model, or --config FILE")
    if failed:
        click.echo(f"\nNeeded and not working: {', '.join(each.name for each in failed)}.")
    return int(bool(failed))


def _print(lines: list[Checked]) -> None:
    width = max(len(each.name) for each in lines)
    area = None
    for each in lines:
        if each.area != area:
            click.echo(f"{'' if area is None else chr(10)}{each.area}")
            area = each.area
        aside = f"; {each.do}" if each.do and not each.fails else ""
        click.echo(f"  {each.state:<8}{each.name:<{width}}  {each.said}{aside}")
        if each.do and each.fails:
            click.echo(f"  {'':<8}{'':<{width}}  {each.do}")
