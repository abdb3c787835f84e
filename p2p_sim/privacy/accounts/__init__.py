"""What each protocol shows each view: one file a family, one function `(protocol, setting) -> PrivacyProfile`."""
