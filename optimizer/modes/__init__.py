"""The modes of the loop: what each improves, against which signal."""
