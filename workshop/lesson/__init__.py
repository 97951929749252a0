"""What a cell calls to teach: guess, check, quiz, results, show."""
