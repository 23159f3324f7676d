//! A panic stops the kernel: the launch ends in an error. With the feature `panic-message` it first
//! prints what happened and where, which costs registers, stack and code in every kernel that can panic.

#[cfg(all(target_arch = "nvptx64", not(feature = "panic-message")))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    crate::debug::trap()
}

#[cfg(all(target_arch = "nvptx64", feature = "panic-message"))]
mod message {
    use core::ffi::CStr;
    use core::fmt::{self, Write};
    use core::panic::PanicInfo;

    use crate::thread::{
        blockIdx_x, blockIdx_y, blockIdx_z, threadIdx_x, threadIdx_y, threadIdx_z,
    };

    /// Text that ends where it is full; the stack of a thread is small.
    struct Line {
        bytes: [u8; 256],
        length: usize,
    }

    impl Write for Line {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for &byte in text.as_bytes() {
                // The last byte stays zero.
                if self.length + 1 < self.bytes.len() {
                    self.bytes[self.length] = byte;
                    self.length += 1;
                }
            }
            Ok(())
        }
    }

    #[panic_handler]
    #[cold]
    fn panic(info: &PanicInfo<'_>) -> ! {
        let mut line = Line {
            bytes: [0; 256],
            length: 0,
        };
        // A Line takes everything, so there are no errors.
        let _ = match info.location() {
            Some(place) => write!(
                line,
                "{}:{}:{}: ",
                place.file(),
                place.line(),
                place.column()
            ),
            None => Ok(()),
        };
        let _ = write!(line, "{}", info.message());
        if let Ok(text) = CStr::from_bytes_until_nul(&line.bytes) {
            // One call, so that lines of several threads do not mix.
            crate::gpu_printf!(
                "block ({}, {}, {}), thread ({}, {}, {}) panicked at {}\n",
                blockIdx_x(),
                blockIdx_y(),
                blockIdx_z(),
                threadIdx_x(),
                threadIdx_y(),
                threadIdx_z(),
                text,
            );
        }
        crate::debug::trap()
    }
}
