r"""Maximum entropy discrimination: distributions over models, trained by margins.

A distribution over models :math:`\Theta` stays as close to its prior as the expected
margins of the training rows allow. Its dual is a concave function of one multiplier per
constraint,

.. math:: J(\lambda) = \sum_r \big[ o_r \lambda_r + g(\lambda_r) \big]
          - \log Z(\lambda), \qquad 0 \le \lambda_r < C,

with a term :math:`g` of the margin prior (`margins`), offsets :math:`o` of real targets,
and the log-partition :math:`\log Z` of the model (`models`), whose derivatives are the
expected margins. `solvers` maximise it.
"""
