"""Runs other programs around the gateway and the player: the demo and its little application."""
