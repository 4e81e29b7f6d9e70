"""A picture and a sound, as small as their formats allow. Data only."""

from __future__ import annotations

RED_PIXEL_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
SILENT_WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA=="


def picture() -> dict[str, str]:
    return {"type": "image", "data": RED_PIXEL_PNG, "mimeType": "image/png"}


def sound() -> dict[str, str]:
    return {"type": "audio", "data": SILENT_WAV, "mimeType": "audio/wav"}
