"""Engine programs: what each serving engine launches in a decode round."""
