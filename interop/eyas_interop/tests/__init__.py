"""Tests of the runner itself: python3 -m unittest discover -t interop interop/eyas_interop/tests"""
