"""Closed lists of what a model file may name; pure data.

An estimator of scikit-learn is listed if its `predict` and `transform` are plain numpy, or if
`_checks.py` checks every array that its compiled code follows.
"""

# Kinds of nodes, with the beginnings of the names of what each may make.
NODES = {
    "DTypeNode": ("numpy.dtype",),
    "DictNode": ("builtins.dict", "collections.OrderedDict"),
    "FunctionNode": ("numpy.", "scipy.special."),
    "JsonNode": ("builtins.str",),
    "ListNode": ("builtins.list",),
    "LossNode": ("sklearn.linear_model._sgd_fast.", "sklearn._loss._loss."),
    "MaskedArrayNode": ("numpy.ma.MaskedArray",),
    "NdArrayNode": ("numpy.",),
    "ObjectNode": ("sklearn.", "transferable."),
    "RandomStateNode": ("numpy.random.",),
    "SetNode": ("builtins.set",),
    "SliceNode": ("builtins.slice",),
    "SparseMatrixNode": ("scipy.sparse.",),
    "TupleNode": ("builtins.tuple",),
    "TypeNode": ("builtins.", "numpy."),
}

SCIKIT_LEARN = {
    f"sklearn.{module}.{name}"
    for module, names in {
        "_loss._loss": "CyHalfBinomialLoss CyHalfSquaredError CyHuberLoss",
        "cluster._kmeans": "KMeans MiniBatchKMeans",
        "compose._column_transformer": "ColumnTransformer _RemainderColsList",
        "compose._target": "TransformedTargetRegressor",
        "covariance._elliptic_envelope": "EllipticEnvelope",
        "covariance._empirical_covariance": "EmpiricalCovariance",
        "covariance._robust_covariance": "MinCovDet",
        "covariance._shrunk_covariance": "LedoitWolf OAS ShrunkCovariance",
        "cross_decomposition._pls": "CCA PLSCanonical PLSRegression PLSSVD",
        "decomposition._factor_analysis": "FactorAnalysis",
        "decomposition._fastica": "FastICA",
        "decomposition._incremental_pca": "IncrementalPCA",
        "decomposition._kernel_pca": "KernelPCA",
        "decomposition._nmf": "NMF",
        "decomposition._pca": "PCA",
        "decomposition._truncated_svd": "TruncatedSVD",
        "discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
        "dummy": "DummyClassifier DummyRegressor",
        "ensemble._bagging": "BaggingClassifier BaggingRegressor",
        "ensemble._forest": "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier "
        "RandomForestRegressor RandomTreesEmbedding",
        "ensemble._stacking": "StackingClassifier StackingRegressor",
        "ensemble._voting": "VotingClassifier VotingRegressor",
        "ensemble._weight_boosting": "AdaBoostClassifier AdaBoostRegressor",
        "feature_extraction.text": "TfidfTransformer",
        "feature_selection._from_model": "SelectFromModel",
        "feature_selection._rfe": "RFE RFECV",
        "feature_selection._sequential": "SequentialFeatureSelector",
        "feature_selection._univariate_selection": "GenericUnivariateSelect SelectFdr SelectFpr "
        "SelectFwe SelectKBest SelectPercentile",
        "feature_selection._variance_threshold": "VarianceThreshold",
        "frozen._frozen": "FrozenEstimator",
        "impute._base": "MissingIndicator SimpleImputer",
        "impute._knn": "KNNImputer",
        "kernel_approximation": "AdditiveChi2Sampler Nystroem PolynomialCountSketch RBFSampler "
        "SkewedChi2Sampler",
        "kernel_ridge": "KernelRidge",
        "linear_model._base": "LinearRegression",
        "linear_model._bayes": "ARDRegression BayesianRidge",
        "linear_model._coordinate_descent": "ElasticNet ElasticNetCV Lasso LassoCV "
        "MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV",
        "linear_model._glm.glm": "GammaRegressor PoissonRegressor TweedieRegressor",
        "linear_model._huber": "HuberRegressor",
        "linear_model._least_angle": "Lars LarsCV LassoLars LassoLarsCV LassoLarsIC",
        "linear_model._logistic": "LogisticRegression LogisticRegressionCV",
        "linear_model._omp": "OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV",
        "linear_model._passive_aggressive": "PassiveAggressiveClassifier "
        "PassiveAggressiveRegressor",
        "linear_model._perceptron": "Perceptron",
        "linear_model._quantile": "QuantileRegressor",
        "linear_model._ridge": "Ridge RidgeCV RidgeClassifier RidgeClassifierCV",
        "linear_model._sgd_fast": "EpsilonInsensitive Hinge ModifiedHuber "
        "SquaredEpsilonInsensitive SquaredHinge",
        "linear_model._stochastic_gradient": "SGDClassifier SGDOneClassSVM SGDRegressor",
        "linear_model._theil_sen": "TheilSenRegressor",
        "mixture._bayesian_mixture": "BayesianGaussianMixture",
        "mixture._gaussian_mixture": "GaussianMixture",
        "model_selection._search": "GridSearchCV RandomizedSearchCV",
        "multiclass": "OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier",
        "multioutput": "ClassifierChain MultiOutputClassifier MultiOutputRegressor RegressorChain",
        "naive_bayes": "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB",
        "neighbors._classification": "KNeighborsClassifier RadiusNeighborsClassifier",
        "neighbors._graph": "KNeighborsTransformer RadiusNeighborsTransformer",
        "neighbors._nca": "NeighborhoodComponentsAnalysis",
        "neighbors._nearest_centroid": "NearestCentroid",
        "neighbors._regression": "KNeighborsRegressor RadiusNeighborsRegressor",
        "neighbors._unsupervised": "NearestNeighbors",
        "neural_network._multilayer_perceptron": "MLPClassifier MLPRegressor",
        "pipeline": "FeatureUnion Pipeline",
        "preprocessing._data": "Binarizer KernelCenterer MaxAbsScaler MinMaxScaler Normalizer "
        "PowerTransformer QuantileTransformer RobustScaler StandardScaler",
        "preprocessing._discretization": "KBinsDiscretizer",
        "preprocessing._encoders": "OneHotEncoder OrdinalEncoder",
        "preprocessing._function_transformer": "FunctionTransformer",
        "preprocessing._label": "LabelBinarizer LabelEncoder",
        "preprocessing._polynomial": "PolynomialFeatures",
        "preprocessing._target_encoder": "TargetEncoder",
        "random_projection": "GaussianRandomProjection SparseRandomProjection",
        "semi_supervised._self_training": "SelfTrainingClassifier",
        "svm._classes": "LinearSVC LinearSVR NuSVC NuSVR OneClassSVM SVC SVR",
        "tree._classes": "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier "
        "ExtraTreeRegressor",
    }.items()
    for name in names.split()
}

OWN = tuple(
    f"transferable.{package}"
    for package in ("classifiers", "transformers", "tables", "model_selection")
)
EXTRA = "transferable.deep"  # imported only for models that hold parts of it
# Other parts of fitted estimators.
OTHERS = [
    "numpy.dtype",
    "sklearn.compose._column_transformer._RemainderColsList",
    *(f"scipy.sparse._{f}.{f}_{kind}" for f in ("csr", "csc") for kind in ("array", "matrix")),
]
DECISION_TREE = "sklearn.tree._tree.Tree"
SEARCH_TREES = {
    f"sklearn.neighbors.{module}.{tree}{bits}"
    for module, tree in (("_kd_tree", "KDTree"), ("_ball_tree", "BallTree"))
    for bits in ("", "64", "32")
}

# Kinds (of numpy) and shapes of arrays, in which equal letters are equal lengths.
SHAPES = {
    "DomainAdapter": {"_target_sample": ("fiub", "np")},
    "KNeighborsClassifier": {"_y": ("iu", "n"), "classes_": ("biufUSOTM", "k")},
    "NeighborsBase": {"_fit_X": ("fiub", "np")},
    "_BaseKMeans": {"cluster_centers_": ("f", "kp")},
    "BaseLibSVM": {
        "support_vectors_": ("f", "np"),
        "support_": ("i", "n"),
        "_n_support": ("i", "k"),
        "_dual_coef_": ("f", "jn"),
        "_intercept_": ("f", "m"),
        "_probA": ("f", "a"),
        "_probB": ("f", "a"),
    },
}
KERNELS = ("linear", "poly", "rbf", "sigmoid")  # of support vector machines
SET_ASIDE = {"n_jobs", "memory", "_n_threads"}  # attributes that the machine decides, not a file
