"""What a run or any other result comes to, as one HTML file."""
