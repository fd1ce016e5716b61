"""The modes (``migrate``, ``align``, ``tune``) and what they are built of: the judge or generator, the checker, the bench."""
