//! The macro that writes the traits of float methods.

/// Defines a trait whose methods are functions of libdevice, the first for `f32`, the second for `f64`,
/// and implements it; after `half` also for `f16` and `bf16`, by way of `f32`.
///
/// What stands under `provided` is written out, for all types alike.
macro_rules! float_methods {
    (half $($rest:tt)*) => {
        float_methods!($($rest)*);
        float_methods!(@half bf16 $($rest)*);
        // Not stable yet, so it must not disturb a check for the host.
        #[cfg(target_arch = "nvptx64")]
        float_methods!(@half f16 $($rest)*);
    };
    (
        $(#[$trait_doc:meta])*
        trait $trait:ident: $super:ident {
            $($(#[$doc:meta])* fn $method:ident(self $(, $other:ident: $type:ty)*) -> $result:ty
                = $single:ident, $double:ident;)*
        }
        provided { $($provided:tt)* }
    ) => {
        $(#[$trait_doc])*
        pub trait $trait: $super {
            $($(#[$doc])* fn $method(self $(, $other: $type)*) -> $result;)*
            $($provided)*
        }

        float_methods!(@implement $trait f32 $(fn $method(self $(, $other: $type)*) -> $result = $single;)*);
        float_methods!(@implement $trait f64 $(fn $method(self $(, $other: $type)*) -> $result = $double;)*);
    };
    (@implement $trait:ident $float:ident
        $(fn $method:ident(self $(, $other:ident: $type:ty)*) -> $result:ty = $function:ident;)*
    ) => {
        impl $trait for $float {
            $(
                #[inline(always)]
                fn $method(self $(, $other: $type)*) -> $result {
                    // SAFETY: arithmetic only.
                    unsafe { functions::$function(self $(, $other)*) }
                }
            )*
        }
    };
    (@half $half:ident
        $(#[$trait_doc:meta])*
        trait $trait:ident: $super:ident {
            $($(#[$doc:meta])* fn $method:ident(self $(, $other:ident: $type:ty)*) -> $result:ty
                = $single:ident, $double:ident;)*
        }
        provided $provided:tt
    ) => {
        impl $trait for $half {
            $(
                #[inline(always)]
                fn $method(self $(, $other: $type)*) -> $result {
                    // SAFETY: arithmetic only.
                    Narrow::narrow(unsafe { functions::$single(Narrow::widen(self) $(, Narrow::widen($other))*) })
                }
            )*
        }
    };
}
pub(crate) use float_methods;
