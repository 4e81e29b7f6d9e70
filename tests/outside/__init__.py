"""Tests of the world behind the ports: files, texts, engines."""
