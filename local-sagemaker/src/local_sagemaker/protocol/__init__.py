"""What AWS's protocols ask of every call: signatures, bodies, validation, answers, errors."""
