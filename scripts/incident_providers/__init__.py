"""What the providers of the incidents say; for scripts/incident-tapes."""
