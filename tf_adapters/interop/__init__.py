"""Imports and exports adapters of AdapterHub's `adapters` and of PEFT."""
