//! Defines macros that implement `Visitor` methods for the visitor wrappers of the module `sizes`.
//!
//! The methods pass values that are not counted as heap memory, such as numbers, to the wrapped visitor.

/// Implements methods of `Visitor` that pass the value to the inner visitor.
macro_rules! plain {
    ($($method:ident: $of:ty)*) => {$(
        #[inline]
        fn $method<E: Error>(self, value: $of) -> Result<Self::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

/// Implements the `Visitor` methods for numbers, booleans, characters, bytes and null.
macro_rules! plain_values {
    () => {
        plain! {
            visit_bool: bool
            visit_i8: i8 visit_i16: i16 visit_i32: i32 visit_i64: i64 visit_i128: i128
            visit_u8: u8 visit_u16: u16 visit_u32: u32 visit_u64: u64 visit_u128: u128
            visit_f32: f32 visit_f64: f64 visit_char: char
            visit_bytes: &[u8] visit_borrowed_bytes: &'de [u8] visit_byte_buf: Vec<u8>
        }

        #[inline]
        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            self.inner.visit_none()
        }

        #[inline]
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            self.inner.visit_unit()
        }

        #[inline]
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.inner.expecting(f)
        }
    };
}
pub(super) use plain;
pub(super) use plain_values;
