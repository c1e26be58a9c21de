"""ptxtile: write exact PTX instructions in Python, check them, run them on a GPU or on a CPU.

Everything here is loaded at first use: `import ptxtile` costs a few milliseconds and imports none of NumPy, Lark,
ml_dtypes and cuda. `_HOME` says where each name lives; the imports under TYPE_CHECKING tell type checkers and editors
the same (a test holds the two equal).
"""

from __future__ import annotations

__version__ = "0.1.0"

# Checkers take it for typing.TYPE_CHECKING; importing typing would cost more than all the rest.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ptxtile import (
        emulator as emulator,
        ir as ir,
        isa as isa,
        layout as layout,
        measure as measure,
        tile as tile,
    )
    from ptxtile.builder.casting import (
        bitcast as bitcast,
        cast as cast,
        pack as pack,
        unpack as unpack,
    )
    from ptxtile.builder.control import (
        break_ as break_,
        continue_ as continue_,
        else_ as else_,
        for_range as for_range,
        if_ as if_,
        label as label,
        while_ as while_,
    )
    from ptxtile.builder.function import (
        Function as Function,
        function as function,
    )
    from ptxtile.builder.hopper.barriers import (
        mbarrier as mbarrier,
        named_barrier as named_barrier,
        ring as ring,
    )
    from ptxtile.builder.hopper.cluster import (
        cluster_arrive as cluster_arrive,
        cluster_sync as cluster_sync,
        cluster_wait as cluster_wait,
        mapa as mapa,
    )
    from ptxtile.builder.hopper.roles import (
        directive as directive,
        elect as elect,
        fence_async as fence_async,
        fence_mbarrier_init as fence_mbarrier_init,
        launch_dependents as launch_dependents,
        wait_on_dependencies as wait_on_dependencies,
        warpgroup_role as warpgroup_role,
    )
    from ptxtile.builder.local_memory import (
        alloc_stack as alloc_stack,
    )
    from ptxtile.builder.math import (
        abs as abs,
        atan as atan,
        atan2 as atan2,
        ceil as ceil,
        copysign as copysign,
        cos as cos,
        cosh as cosh,
        erf as erf,
        exp as exp,
        exp2 as exp2,
        exp10 as exp10,
        floor as floor,
        fmod as fmod,
        hypot as hypot,
        log as log,
        log2 as log2,
        log10 as log10,
        pow as pow,
        round as round,
        rsqrt as rsqrt,
        sigmoid as sigmoid,
        sin as sin,
        sinh as sinh,
        sqrt as sqrt,
        tan as tan,
        tanh as tanh,
        trunc as trunc,
    )
    from ptxtile.builder.module_builder import (
        ModuleBuilder as ModuleBuilder,
    )
    from ptxtile.builder.parameters import (
        Pointer as Pointer,
        alloc_local as alloc_local,
        alloc_shared as alloc_shared,
    )
    from ptxtile.builder.pointers import (
        address as address,
    )
    from ptxtile.builder.printing import (
        printf as printf,
    )
    from ptxtile.builder.scalars import (
        assume as assume,
        block_dim as block_dim,
        block_idx as block_idx,
        cluster_idx as cluster_idx,
        cluster_rank as cluster_rank,
        cluster_size as cluster_size,
        cta_sync as cta_sync,
        fma as fma,
        grid_dim as grid_dim,
        lane_id as lane_id,
        maximum as maximum,
        minimum as minimum,
        reg as reg,
        select as select,
        thread_idx as thread_idx,
        thread_rank as thread_rank,
        trap_if as trap_if,
        warp_id as warp_id,
    )
    from ptxtile.builder.tensor_map import (
        TensorMap as TensorMap,
    )
    from ptxtile.builder.tensor_memory import (
        tensor_memory as tensor_memory,
    )
    from ptxtile.builder.tensors import (
        Dim as Dim,
        Tensor as Tensor,
        dim as dim,
    )
    from ptxtile.dtypes import (
        DType as DType,
        Scalar as Scalar,
        bfloat16 as bfloat16,
        bool_ as bool_,
        float8_e4m3fn as float8_e4m3fn,
        float8_e5m2 as float8_e5m2,
        float8_e8m0fnu as float8_e8m0fnu,
        float16 as float16,
        float32 as float32,
        float64 as float64,
        int8 as int8,
        int16 as int16,
        int32 as int32,
        int64 as int64,
        uint8 as uint8,
        uint16 as uint16,
        uint32 as uint32,
        uint64 as uint64,
    )
    from ptxtile.errors import (
        AssemblerError as AssemblerError,
        Diagnostic as Diagnostic,
        DriverError as DriverError,
        EmulatorError as EmulatorError,
        FormError as FormError,
        LayoutError as LayoutError,
        ModuleSyntaxError as ModuleSyntaxError,
        NotationError as NotationError,
        OperandError as OperandError,
        PtxtileError as PtxtileError,
        TargetError as TargetError,
        TileError as TileError,
        TraceError as TraceError,
    )
    from ptxtile.execute import (
        AssemblerWarning as AssemblerWarning,
        DeviceArray as DeviceArray,
        asarray as asarray,
        assemble as assemble,
        default_device as default_device,
        disassemble as disassemble,
        empty as empty,
        zeros as zeros,
    )
    from ptxtile.ir import (
        Module as Module,
        parse as parse,
    )
    from ptxtile.ir.check import (
        check_text as check_text,
    )
    from ptxtile.isa import (
        Form as Form,
        Verdict as Verdict,
        forms as forms,
        ptx as ptx,
    )
    from ptxtile.isa.validate import (
        is_valid as is_valid,
        validate as validate,
        verdict as verdict,
    )
    from ptxtile.launchable import (
        Kernel as Kernel,
        kernel as kernel,
    )
    from ptxtile.layout import (
        Axis as Axis,
        ComposeLayout as ComposeLayout,
        R as R,
        S as S,
        TCol as TCol,
        TileLayout as TileLayout,
        TLane as TLane,
        bx as bx,
        by as by,
        bz as bz,
        cbx as cbx,
        cby as cby,
        cbz as cbz,
        laneid as laneid,
        m as m,
        tid_in_wg as tid_in_wg,
        tx as tx,
        warpid as warpid,
        wgid as wgid,
        wid_in_wg as wid_in_wg,
    )
    from ptxtile.layout.shared import (
        shared_layout as shared_layout,
    )

_MODULES = frozenset({"emulator", "ir", "isa", "layout", "measure", "tile"})
_HOME = {
    name: module
    for module, names in {
        "builder.casting": "bitcast cast pack unpack",
        "builder.control": "break_ continue_ else_ for_range if_ label while_",
        "builder.function": "Function function",
        "builder.hopper.barriers": "mbarrier named_barrier ring",
        "builder.hopper.cluster": "cluster_arrive cluster_sync cluster_wait mapa",
        "builder.hopper.roles": """
            directive elect fence_async fence_mbarrier_init launch_dependents wait_on_dependencies
            warpgroup_role
        """,
        "builder.local_memory": "alloc_stack",
        "builder.math": """
            abs atan atan2 ceil copysign cos cosh erf exp exp10 exp2 floor fmod hypot log log10
            log2 pow round rsqrt sigmoid sin sinh sqrt tan tanh trunc
        """,
        "builder.module_builder": "ModuleBuilder",
        "builder.parameters": "Pointer alloc_local alloc_shared",
        "builder.pointers": "address",
        "builder.printing": "printf",
        "builder.scalars": """
            assume block_dim block_idx cluster_idx cluster_rank cluster_size cta_sync fma
            grid_dim lane_id maximum minimum reg select thread_idx thread_rank trap_if warp_id
        """,
        "builder.tensor_map": "TensorMap",
        "builder.tensor_memory": "tensor_memory",
        "builder.tensors": "Dim Tensor dim",
        "dtypes": """
            DType Scalar bfloat16 bool_ float16 float32 float64 float8_e4m3fn float8_e5m2
            float8_e8m0fnu int16 int32 int64 int8 uint16 uint32 uint64 uint8
        """,
        "errors": """
            AssemblerError Diagnostic DriverError EmulatorError FormError LayoutError
            ModuleSyntaxError NotationError OperandError PtxtileError TargetError TileError
            TraceError
        """,
        "execute": "AssemblerWarning DeviceArray asarray assemble default_device disassemble empty zeros",
        "ir": "Module parse",
        "ir.check": "check_text",
        "isa": "Form Verdict forms ptx",
        "isa.validate": "is_valid validate verdict",
        "launchable": "Kernel kernel",
        "layout": """
            Axis ComposeLayout R S TCol TLane TileLayout bx by bz cbx cby cbz laneid m tid_in_wg
            tx warpid wgid wid_in_wg
        """,
        "layout.shared": "shared_layout",
    }.items()
    for name in names.split()
}


if not TYPE_CHECKING:  # hidden from type checkers, for which a misspelt name shall be an error

    def __getattr__(name: str) -> object:
        """Load the module that a name lives in, and all names that live there with it.

        A whole module's names at once, so that `eval(repr(layout), vars(ptxtile))` finds the axes.
        """
        import importlib

        if name == "__all__":  # a star import leaves Python's own abs, pow and round alone
            import builtins

            return [public for public in __dir__() if not hasattr(builtins, public)]
        if name in _MODULES:
            return importlib.import_module(f"ptxtile.{name}")
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(
                f"ptxtile has no name {name!r}", name=name, obj=importlib.import_module("ptxtile")
            )
        module = importlib.import_module(f"ptxtile.{home}")
        globals().update({other: getattr(module, other) for other, at in _HOME.items() if at == home})
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*_HOME, *_MODULES, "__version__"})
