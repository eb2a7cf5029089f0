"""A package: its tests have one Chromium, and one server on the incidents."""
