//! Reads the fields in the bytes of a message, and compares them with the message's
//! fields in the table.
//!
//! Guarantees: returns an error if the fields in the bytes are not in ascending order of their numbers. Does
//! not decode the values of the fields.

use super::{Context, Missing};
use crate::{
    error::Error,
    table::{Field, Message},
    wire::{WireError, WireFields, WireValue},
};

/// A reader of one message, with a position in the bytes and a position in [`Message::fields`].
#[derive(Clone, Debug)]
pub(super) struct Level<'de> {
    fields: WireFields<'de>,
    /// The next field in the bytes, if it has already been read from `fields`.
    next: Option<(u32, WireValue<'de>)>,
    message: &'static Message,
    /// Index in [`Message::fields`] of the next field that [`Level::advance`] returns or skips.
    at: usize,
}

impl<'de> Level<'de> {
    pub(super) fn new(message: &'static Message, bytes: &'de [u8]) -> Self {
        Self {
            fields: WireFields::new(bytes),
            next: None,
            message,
            at: 0,
        }
    }

    #[inline]
    fn peek(&mut self) -> Result<Option<(u32, WireValue<'de>)>, WireError> {
        if self.next.is_none() {
            self.next = self.fields.next().transpose()?;
        }
        Ok(self.next)
    }

    /// Returns the next value in the bytes if it belongs to the field with this number, and
    /// `None` otherwise.
    ///
    /// The value is the next item of a list or the next entry of a map.
    #[inline]
    pub(super) fn again(&mut self, number: u32) -> Result<Option<WireValue<'de>>, WireError> {
        let next = self.peek()?.filter(|(next, _)| *next == number);
        if next.is_some() {
            self.next = None;
        }
        Ok(next.map(|(_, value)| value))
    }

    /// Returns the number of consecutive values of the field with this number, from the current position.
    pub(super) fn count(&self, number: u32) -> usize {
        let next = self.next.into_iter().map(|(next, _)| next);
        let rest = self.fields.clone().map_while(Result::ok);
        let numbers = next.chain(rest.map(|(next, _)| next));
        numbers.take_while(|next| *next == number).count()
    }

    /// Reads the bytes up to the first value of the field with this number, and returns this value.
    ///
    /// Returns `None` if the rest of the bytes does not contain the field.
    pub(super) fn find(&mut self, number: u32) -> Result<Option<WireValue<'de>>, WireError> {
        while let Some((next, value)) = self.peek()? {
            self.next = None;
            if next == number {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Returns the next field of the JSON object, in ascending order of field numbers.
    ///
    /// The value is the field's first value in the bytes. The value is `None` if the bytes do not contain
    /// the field, but [`Missing::Zero`] requires that the visitor receives it. Skips fields that the table
    /// does not contain.
    #[inline]
    pub(super) fn advance(
        &mut self,
        context: &Context,
    ) -> Result<Option<(&'static Field, Option<WireValue<'de>>)>, Error> {
        loop {
            let next = self.peek()?;
            let number = next.map_or(u32::MAX, |(number, _)| number);
            while let Some(field) = self.message.fields.get(self.at) {
                if field.number() > number {
                    break;
                }
                self.at += 1;
                if field.number() == number {
                    self.next = None;
                    return Ok(Some((field, next.map(|(_, value)| value))));
                }
                if context.options.missing == Missing::Zero && field.is_written_if_missing() {
                    return Ok(Some((field, None)));
                }
            }
            if next.is_none() {
                return Ok(None);
            }
            if self.message.position(number).is_some() {
                return Err(context.unordered().into());
            }
            self.next = None;
        }
    }
}
