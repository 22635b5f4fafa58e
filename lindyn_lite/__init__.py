"""Training dynamics of deep linear networks: closed forms, landscape and flow.

The modules are independent concepts; import the one you need::

    from lindyn_lite import landscape, networks, tasks

Conventions: a network is a list of weights ``[W1, …, WL]``, input layer first, with
``Wl`` of shape ``(d_l, d_{l-1})``; it computes ``W = WL … W1``. The loss is
``½‖M − W‖²`` (Frobenius) for a teacher ``M``, and time is measured in units of ``1/η``.
Importing the package loads neither matplotlib nor ipywidgets.
"""

__version__ = "0.1.0"
