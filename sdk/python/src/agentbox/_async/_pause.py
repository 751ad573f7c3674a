"""Waiting, which differs between the two clients."""

from __future__ import annotations

from asyncio import sleep as pause

__all__ = ["pause"]
