"""The modes ``migrate``, ``align`` and ``tune``, with the judge, generator and checker that they share."""
