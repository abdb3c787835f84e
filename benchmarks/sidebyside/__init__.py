"""The same exchange in this project and in other simulators, each in an environment of its own."""
