"""What an exchange comes to: framed (`decode`), rebuilt (`rebuild`), and checked by the rules."""
