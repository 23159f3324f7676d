/* Launches kernels of rustcuda-backend's loaders in C: the usual launch, and nothing else.
 *
 * A loader is pure Python and needs none of this. Where this module is installed, a loader gives it the launches
 * whose arguments are ints, floats, bools and torch tensors of the right dtype on one GPU; it checks them,
 * packs them and calls cuLaunchKernelEx. Whatever is not like that, errors included, it hands to the kernel's
 * launcher in Python, which looks at the same arguments again. So it may refuse what is right, but must never
 * launch what is wrong.
 *
 * Of a tensor it asks everything at once, by DLPack's table of C functions
 * (https://dmlc.github.io/dlpack/latest/c_api.html): `torch.Tensor.__dlpack_c_exchange_api__`, which torch
 * has since 2.10.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

/* What a loader must find in `INTERFACE`; raised when one of the functions below takes other arguments. */
#define INTERFACE 1

/* Without free threading there is nothing to lock: what is looked up is copied before the GIL is let go. */
#ifndef Py_BEGIN_CRITICAL_SECTION
#define Py_BEGIN_CRITICAL_SECTION(op) {
#define Py_END_CRITICAL_SECTION() }
#endif

/* ---- DLPack, as far as it is used ---- */

#define DEVICE_CUDA 2
#define DLPACK_MAJOR 1

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DataType;

typedef struct {
    void *data;
    int32_t device_type, device_index, dimensions;
    DataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;

typedef struct {
    uint32_t major, minor;
    void *earlier, *allocate, *to_managed, *from_managed;
    int (*describe)(void *object, Tensor *tensor);
    int (*current_stream)(int32_t device_type, int32_t device_index, void **stream);
} Exchange;

/* ---- The driver, as far as it is used ---- */

typedef struct {
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned attribute_count;
} Configuration;

typedef int (*LaunchKernelEx)(const Configuration *, void *function, void **parameters, void **extra);

/* What the process has of them; set by `use`. */
static LaunchKernelEx launch_kernel;
static const Exchange *exchange;
static PyObject *tensor_types[2];
static PyObject *is_grad_enabled;
static PyObject *requires_grad; /* the name */
/* Raised by `forget`: what was found before that is not used any more. */
static uint64_t generation;

/* ---- Parameters ---- */

/* As many values as a kernel may take to be launched from here. */
#define MOST_VALUES 64

typedef enum { SIGNED = 'i', UNSIGNED = 'u', FLOAT = 'f', BOOL = 'b', POINTER = 'p', SLICE = 's', ROWS = 'r' } Kind;

typedef struct {
    char kind;       /* a Kind */
    uint8_t bits;    /* of a number or an element */
    uint8_t code;    /* DLPack's of an element's type; ANY_TYPE where it may be of any */
    uint8_t mutable; /* whether the kernel may write there */
} Parameter;

#define ANY_TYPE 255

/* Whether a loader describes parameters so. */
static int is_known(const Parameter *parameter) {
    switch (parameter->kind) {
    case SIGNED:
    case UNSIGNED:
    case FLOAT: return parameter->bits && parameter->bits <= 64;
    case BOOL:
    case POINTER:
    case SLICE:
    case ROWS: return 1;
    default: return 0;
    }
}

static Py_ssize_t values_of(const Parameter *parameter) {
    return parameter->kind == ROWS ? 3 : parameter->kind == SLICE ? 2 : 1;
}

/* The functions below say whether a value is as it should be; a Python error may be set when it is not. */

static int read_signed(PyObject *value, int bits, uint64_t *out) {
    if (!PyLong_CheckExact(value)) return 0;
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return 0;
    if (bits < 64 && (number < -(1LL << (bits - 1)) || number >= 1LL << (bits - 1))) return 0;
    *out = (uint64_t)number;
    return 1;
}

static int read_unsigned(PyObject *value, int bits, uint64_t *out) {
    if (!PyLong_CheckExact(value)) return 0;
    unsigned long long number = PyLong_AsUnsignedLongLong(value);
    if (number == (unsigned long long)-1 && PyErr_Occurred()) return 0;
    if (bits < 64 && number >> bits) return 0;
    *out = number;
    return 1;
}

static int read_float(PyObject *value, int bits, uint64_t *out) {
    double number;
    if (PyFloat_CheckExact(value)) {
        number = PyFloat_AS_DOUBLE(value);
    } else if (PyLong_CheckExact(value)) {
        number = PyLong_AsDouble(value);
        if (number == -1.0 && PyErr_Occurred()) return 0;
    } else {
        return 0;
    }
    if (bits == 64) {
        memcpy(out, &number, sizeof number);
        return 1;
    }
    if (isnan(number)) return 0; /* Python 3.14 keeps more of its bits than earlier ones */
    float single = (float)number;
    if (isinf(single) && !isinf(number)) return 0;
    *out = 0;
    memcpy(out, &single, sizeof single);
    return 1;
}

static int read_bool(PyObject *value, uint64_t *out) {
    *out = value == Py_True;
    return PyBool_Check(value);
}

static int is_contiguous(const Tensor *tensor) {
    int64_t step = 1;
    for (int axis = tensor->dimensions - 1; tensor->strides && axis >= 0; axis--) {
        if (tensor->shape[axis] != 1 && tensor->strides[axis] != step) return 0;
        step *= tensor->shape[axis];
    }
    return 1;
}

/* Whether writing to a tensor goes unseen by autograd. */
static int is_followed(PyObject *tensor) {
    PyObject *answer = PyObject_GetAttr(tensor, requires_grad);
    Py_XDECREF(answer); /* True and False live on */
    if (answer == Py_True) {
        answer = PyObject_CallNoArgs(is_grad_enabled);
        Py_XDECREF(answer);
    }
    return answer != Py_False;
}

/* The tensor's values; `device` is its GPU, or -1 where no earlier argument told. */
static int read_tensor(PyObject *value, const Parameter *parameter, int32_t *device, uint64_t *out) {
    Tensor tensor;
    PyObject *type = (PyObject *)Py_TYPE(value);
    if (type != tensor_types[0] && type != tensor_types[1]) return 0;
    if (exchange->describe(value, &tensor)) return 0;
    if (tensor.device_type != DEVICE_CUDA || !tensor.data) return 0;
    if (*device >= 0 && tensor.device_index != *device) return 0;
    *device = tensor.device_index;
    if (parameter->code != ANY_TYPE &&
        (tensor.dtype.code != parameter->code || tensor.dtype.bits != parameter->bits || tensor.dtype.lanes != 1))
        return 0;
    out[0] = (uint64_t)(uintptr_t)tensor.data + tensor.byte_offset;
    if (parameter->kind != POINTER) {
        if (!is_contiguous(&tensor)) return 0;
        out[1] = 1;
        for (int axis = 0; axis < tensor.dimensions; axis++) out[1] *= (uint64_t)tensor.shape[axis];
        if (!out[1]) return 0; /* points nowhere */
    }
    if (parameter->kind == ROWS) {
        if (!tensor.dimensions || tensor.shape[tensor.dimensions - 1] >> 32) return 0;
        out[2] = (uint64_t)tensor.shape[tensor.dimensions - 1];
    }
    return !(parameter->mutable && is_followed(value));
}

static int read_value(PyObject *value, const Parameter *parameter, int32_t *device, uint64_t *out) {
    switch (parameter->kind) {
    case SIGNED: return read_signed(value, parameter->bits, out);
    case UNSIGNED: return read_unsigned(value, parameter->bits, out);
    case FLOAT: return read_float(value, parameter->bits, out);
    case BOOL: return read_bool(value, out);
    default: return read_tensor(value, parameter, device, out);
    }
}

/* ---- Launch: a kernel with its grid and block ---- */

/* For how many streams a function is kept, as in the loader. */
#define MOST_FOUND 64

/* The kernel's function on a GPU, where launches on a stream have been found to fit. */
typedef struct {
    int32_t device;
    uint64_t stream, function, generation;
} Found;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *weak_references;
    PyObject *start;      /* takes launches on a GPU and stream that are not known yet */
    PyObject *launcher;   /* takes those that are not usual */
    PyObject *parameters; /* bytes: Parameter after Parameter */
    int left;             /* whether the launcher takes all */
    unsigned grid[3], block[3], shared;
    int own_stream;
    uint64_t stream;
    Found *found;
    Py_ssize_t found_count;
} Launch;

static uint64_t find(Launch *self, int32_t device, uint64_t stream) {
    uint64_t function = 0;
    Py_BEGIN_CRITICAL_SECTION(self);
    for (Py_ssize_t index = 0; index < self->found_count; index++) {
        const Found *found = &self->found[index];
        if (found->stream == stream && found->device == device && found->generation == generation)
            function = found->function;
    }
    Py_END_CRITICAL_SECTION();
    return function;
}

/* Whether anything was found; what `use` set before that can be read then. */
static int has_found(Launch *self) {
    Py_ssize_t count;
    Py_BEGIN_CRITICAL_SECTION(self);
    count = self->found_count;
    Py_END_CRITICAL_SECTION();
    return count > 0;
}

typedef enum { LAUNCHED, UNKNOWN, UNUSUAL } Outcome;

/* Launches the kernel if all is as usual; else nothing has happened. */
static Outcome launch(Launch *self, PyObject *const *arguments, Py_ssize_t count) {
    const Parameter *parameter = (const Parameter *)PyBytes_AS_STRING(self->parameters);
    if (self->left || count != PyBytes_GET_SIZE(self->parameters) / (Py_ssize_t)sizeof *parameter) return UNUSUAL;
    if (!has_found(self)) return UNKNOWN;
    uint64_t values[MOST_VALUES];
    void *addresses[MOST_VALUES];
    uint64_t *next = values;
    int32_t device = -1;
    for (Py_ssize_t index = 0; index < count; index++, parameter++) {
        if (!read_value(arguments[index], parameter, &device, next)) return UNUSUAL;
        next += values_of(parameter);
    }
    for (Py_ssize_t index = 0; index < next - values; index++) addresses[index] = &values[index];
    void *stream = (void *)(uintptr_t)self->stream;
    if (!self->own_stream && exchange->current_stream(DEVICE_CUDA, device, &stream)) return UNUSUAL;
    void *function = (void *)(uintptr_t)find(self, device, (uint64_t)(uintptr_t)stream);
    if (!function) return UNKNOWN;
    Configuration configuration = {
        {self->grid[0], self->grid[1], self->grid[2]},
        {self->block[0], self->block[1], self->block[2]},
        self->shared, stream, NULL, 0,
    };
    int result;
    /* It waits where the GPU has enough to do. */
    Py_BEGIN_ALLOW_THREADS
    result = launch_kernel(&configuration, function, addresses, NULL);
    Py_END_ALLOW_THREADS
    return result ? UNUSUAL : LAUNCHED;
}

static PyObject *launch_call(PyObject *callable, PyObject *const *arguments, size_t flags, PyObject *names) {
    Launch *self = (Launch *)callable;
    Outcome outcome = names ? UNUSUAL : launch(self, arguments, PyVectorcall_NARGS(flags));
    if (outcome == LAUNCHED) Py_RETURN_NONE;
    PyErr_Clear();
    return PyObject_Vectorcall(outcome == UNKNOWN ? self->start : self->launcher, arguments, flags, names);
}

static PyObject *launch_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    static char *names[] = {"start", "launcher", "parameters", "grid", "block", "shared", "stream", NULL};
    PyObject *start, *launcher, *parameters, *stream;
    unsigned grid[3], block[3], shared;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "OOO!(III)(III)IO:Launch", names, &start, &launcher,
                                     &PyBytes_Type, &parameters, &grid[0], &grid[1], &grid[2], &block[0], &block[1],
                                     &block[2], &shared, &stream))
        return NULL;
    Py_ssize_t values = 0, size = PyBytes_GET_SIZE(parameters);
    const Parameter *parameter = (const Parameter *)PyBytes_AS_STRING(parameters);
    int known = size % sizeof *parameter == 0;
    for (Py_ssize_t left = size / (Py_ssize_t)sizeof *parameter; left > 0; left--, parameter++) {
        values += values_of(parameter);
        known = known && is_known(parameter);
    }
    if (!known || values > MOST_VALUES)
        return PyErr_Format(PyExc_ValueError, "parameters must be groups of 4 bytes, of at most %d values", MOST_VALUES);
    uint64_t handle = stream == Py_None ? 0 : PyLong_AsUnsignedLongLong(stream);
    if (PyErr_Occurred()) return NULL;
    Launch *self = (Launch *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->vectorcall = launch_call;
    self->start = Py_NewRef(start);
    self->launcher = Py_NewRef(launcher);
    self->parameters = Py_NewRef(parameters);
    memcpy(self->grid, grid, sizeof grid);
    memcpy(self->block, block, sizeof block);
    self->shared = shared;
    self->own_stream = stream != Py_None;
    self->stream = handle;
    return (PyObject *)self;
}

/* Keeps a function; whether there was memory for it. */
static int keep(Launch *self, Found found) {
    Py_ssize_t index = 0;
    while (index < self->found_count && self->found[index].generation == generation &&
           !(self->found[index].device == found.device && self->found[index].stream == found.stream))
        index++;
    if (index == MOST_FOUND) index = self->found_count = 0;
    if (index == self->found_count) {
        Found *grown = PyMem_Realloc(self->found, (index + 1) * sizeof *grown);
        if (!grown) return 0;
        self->found = grown;
        self->found_count = index + 1;
    }
    self->found[index] = found;
    return 1;
}

static PyObject *launch_ready(Launch *self, PyObject *arguments) {
    int device, kept;
    unsigned long long stream, function;
    if (!PyArg_ParseTuple(arguments, "iKK:ready", &device, &stream, &function)) return NULL;
    if (!launch_kernel || !exchange) Py_RETURN_NONE;
    Py_BEGIN_CRITICAL_SECTION(self);
    kept = keep(self, (Found){device, stream, function, generation});
    Py_END_CRITICAL_SECTION();
    if (!kept) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *launch_leave(Launch *self, PyObject *unused) {
    self->left = 1;
    Py_RETURN_NONE;
}

static int launch_traverse(Launch *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->start);
    Py_VISIT(self->launcher);
    return 0;
}

/* Without a function to clear it, as for methods: it is always whole, and what it refers to was there first. */
static void launch_dealloc(Launch *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weak_references) PyObject_ClearWeakRefs((PyObject *)self);
    Py_DECREF(self->start);
    Py_DECREF(self->launcher);
    Py_DECREF(self->parameters);
    PyMem_Free(self->found);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef launch_methods[] = {
    {"ready", (PyCFunction)launch_ready, METH_VARARGS,
     "ready(device, stream, function)\n--\n\nLaunches that function on that stream of that GPU from now on."},
    {"leave", (PyCFunction)launch_leave, METH_NOARGS, "leave()\n--\n\nLeaves all launches to the launcher from now on."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef launch_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launch, vectorcall), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Launch, weak_references), READONLY, NULL},
    {"start", T_OBJECT, offsetof(Launch, start), READONLY, "What takes launches on a GPU and stream not known yet."},
    {"launcher", T_OBJECT, offsetof(Launch, launcher), READONLY, "What takes launches that are not usual."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot launch_slots[] = {
    {Py_tp_doc, "Launch(start, launcher, parameters, grid, block, shared, stream)\n--\n\n"
                "A kernel with its grid and block.\n\n"
                "parameters has 4 bytes each: kind, bits, DLPack's code of the type, whether it is written to."},
    {Py_tp_new, launch_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, launch_traverse},
    {Py_tp_dealloc, launch_dealloc},
    {Py_tp_methods, launch_methods},
    {Py_tp_members, launch_members},
    {0, NULL},
};

static PyType_Spec launch_spec = {
    "rustcuda_launch.Launch",
    sizeof(Launch),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    launch_slots,
};

/* ---- The module ---- */

/* What is replaced is kept for as long as the process lives, like torch itself: another thread may be using it. */
static PyObject *use(PyObject *module, PyObject *arguments) {
    unsigned long long address;
    PyObject *capsule, *types[2], *grad;
    if (!PyArg_ParseTuple(arguments, "KOO!O!O:use", &address, &capsule, &PyType_Type, &types[0], &PyType_Type,
                          &types[1], &grad))
        return NULL;
    const Exchange *offered = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    PyErr_Clear(); /* of a capsule of something else */
    if (!offered || !address || offered->major != DLPACK_MAJOR || !offered->describe || !offered->current_stream) Py_RETURN_FALSE;
    tensor_types[0] = Py_NewRef(types[0]);
    tensor_types[1] = Py_NewRef(types[1]);
    is_grad_enabled = Py_NewRef(grad);
    exchange = offered;
    launch_kernel = (LaunchKernelEx)(uintptr_t)address;
    Py_RETURN_TRUE;
}

static PyObject *forget(PyObject *module, PyObject *unused) {
    Py_BEGIN_CRITICAL_SECTION(module);
    generation++;
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"use", use, METH_VARARGS,
     "use(address, capsule, tensor, parameter, is_grad_enabled)\n--\n\n"
     "Takes the address of cuLaunchKernelEx, torch's table for DLPack, two of its types and a function; whether "
     "they fit."},
    {"forget", forget, METH_NOARGS, "forget()\n--\n\nMakes every launch ask its `start` first again."},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module) {
    PyObject *type = PyType_FromSpec(&launch_spec);
    if (!requires_grad) requires_grad = PyUnicode_InternFromString("requires_grad");
    int failed = !type || !requires_grad || PyModule_AddObjectRef(module, "Launch", type) ||
                 PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rustcuda_launch", "Launches kernels of rustcuda-backend's loaders in C.", 0,
    functions, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_rustcuda_launch(void) { return PyModuleDef_Init(&definition); }
