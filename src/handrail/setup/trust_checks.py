"""What the project's own file says and nobody on this machine has trusted. Only looks."""

from __future__ import annotations

from collections.abc import Iterator

from handrail.settings import CONFIG_FILE
from handrail.setup.findings import Finding, Patient, look, well
from handrail.wiring import Place, agreed_at, file_at


def check_trust(patient: Patient) -> Iterator[Finding]:
    place = Place(project=patient.project, home=patient.home, environ=patient.environ)
    waiting = [one.name for one in file_at(place).waiting if one.name != "db"]  # that one is the store's finding
    if waiting:
        what = f"{CONFIG_FILE} is not followed in {', '.join(waiting)}: nobody trusted that here"
        yield look("trust", what, "handrail trust, which shows it and asks")
    elif agreed_at(place).marks:
        yield well("trust", f"{CONFIG_FILE}: followed as you trusted it")
