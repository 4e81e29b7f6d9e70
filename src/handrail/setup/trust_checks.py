"""What the project's own file says and nobody on this machine has trusted. Only looks."""

from __future__ import annotations

from collections.abc import Iterator

from handrail.outside.trusted_settings import agreed_for
from handrail.settings import CONFIG_FILE
from handrail.settings_in_force import file_at
from handrail.setup.findings import Finding, Patient, run_checks, well


def check_trust(patient: Patient) -> Iterator[Finding]:
    layer = file_at(patient.project, patient.home)
    waiting = [one.name for one in layer.waiting if one.name != "db"]  # that one is the store's finding
    if waiting:
        what = f"{CONFIG_FILE} is not followed in {', '.join(waiting)}: nobody trusted that here"
        yield run_checks("trust", what, "handrail trust, which shows it and asks")
    elif agreed_for(patient.project, patient.home).marks:
        yield well("trust", f"{CONFIG_FILE}: followed as you trusted it")
