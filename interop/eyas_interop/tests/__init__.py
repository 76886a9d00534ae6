"""Tests of the runner: python3 -m unittest discover -t interop interop/eyas_interop/tests"""
