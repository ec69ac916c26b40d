// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "./IRentalEscrow.sol";

/// @title What is stored of a rental, and everything that follows from it
/// @dev Only what happened is stored. The state, the deadlines and all amounts are computed from it, always in the same
/// way, so no two of them can disagree. Three slots, in one struct:
///
///   slot  bytes, from the right
///   0     renter 20 | pricePerHour 12
///   1     provider 20 | createdAt 5 | startWindow 4 | feeBps 2 | reason 1
///   2     startedAt 5 | closedAt 5 | fundedSeconds 4 | maxSeconds 4 | inspectionSeconds 4 | budget 2
///         | outcome 1 | closedBy 1 | renterPlace 3 | providerPlace 3
///
/// and what fills a slot of its own, in mappings of the contract: accessHash; the document, which is readyHash from
/// activation on and reportDigest once closed; feeRecipient, if feeBps is not 0.
///
/// Price times time fits 120 bits, after the division by an hour, because the price has 96 and the time 32.
library Records {
    struct Record {
        address renter;
        uint96 pricePerHour;
        address provider;
        uint40 createdAt;
        uint32 startWindow;
        uint16 feeBps;
        uint8 reason;
        uint40 startedAt;
        uint40 closedAt;
        uint32 fundedSeconds;
        uint32 maxSeconds;
        uint32 inspectionSeconds;
        uint16 budget;
        IRentalEscrow.Outcome outcome;
        IRentalEscrow.Party closedBy;
        uint24 renterPlace;
        uint24 providerPlace;
    }

    uint256 private constant HOUR = 3600;
    uint256 private constant BPS = 10_000;

    // ---- state and time -----------------------------------------------------------------------------------

    function state(Record storage r) internal view returns (IRentalEscrow.State) {
        if (r.outcome != IRentalEscrow.Outcome.None) return IRentalEscrow.State.Closed;
        if (r.startedAt != 0) return IRentalEscrow.State.Active;
        return r.createdAt != 0 ? IRentalEscrow.State.Funded : IRentalEscrow.State.None;
    }

    function status(Record storage r) internal view returns (IRentalEscrow.Status) {
        IRentalEscrow.State now_ = state(r);
        if (now_ == IRentalEscrow.State.Funded) {
            return block.timestamp > startBy(r) ? IRentalEscrow.Status.NoShow : IRentalEscrow.Status.Funded;
        }
        if (now_ == IRentalEscrow.State.Active) {
            return block.timestamp < endsAt(r) ? IRentalEscrow.Status.Active : IRentalEscrow.Status.Expired;
        }
        return now_ == IRentalEscrow.State.Closed ? IRentalEscrow.Status.Closed : IRentalEscrow.Status.None;
    }

    function startBy(Record storage r) internal view returns (uint256) {
        return uint256(r.createdAt) + r.startWindow;
    }

    /// @dev 0 before activation.
    function endsAt(Record storage r) internal view returns (uint256) {
        return r.startedAt == 0 ? 0 : uint256(r.startedAt) + r.fundedSeconds;
    }

    function inspectUntil(Record storage r) internal view returns (uint256) {
        return uint256(r.startedAt) + r.inspectionSeconds;
    }

    // ---- money --------------------------------------------------------------------------------------------

    /// @dev What is paid ahead rounds up.
    function priceAhead(uint256 pricePerHour, uint256 seconds_) internal pure returns (uint120) {
        return uint120((pricePerHour * seconds_ + HOUR - 1) / HOUR);
    }

    function deposit(Record storage r) internal view returns (uint120) {
        return priceAhead(r.pricePerHour, r.fundedSeconds);
    }

    /// @dev What is owed rounds down, so it cannot exceed the deposit: time is clamped to the funded time.
    function accrued(Record storage r) internal view returns (uint120) {
        if (r.outcome == IRentalEscrow.Outcome.None) return r.startedAt == 0 ? 0 : _owedAt(r, block.timestamp);
        return isPaid(r.outcome) ? _owedAt(r, r.closedAt) : 0;
    }

    function isPaid(IRentalEscrow.Outcome outcome) internal pure returns (bool) {
        return outcome == IRentalEscrow.Outcome.Ended || outcome == IRentalEscrow.Outcome.Expired;
    }

    /// @dev How the deposit of a closed rental was divided. The three add up to it.
    function division(Record storage r) internal view returns (uint120 paid, uint120 fee, uint120 refund) {
        uint120 owed = accrued(r);
        fee = uint120(uint256(owed) * r.feeBps / BPS);
        paid = owed - fee;
        refund = deposit(r) - owed;
    }

    function _owedAt(Record storage r, uint256 time) private view returns (uint120) {
        uint256 end = endsAt(r);
        return uint120(uint256(r.pricePerHour) * ((time < end ? time : end) - r.startedAt) / HOUR);
    }

    // ---- shown --------------------------------------------------------------------------------------------

    /// @dev All but what the record does not hold.
    function show(Record storage r) internal view returns (IRentalEscrow.Rental memory shown) {
        shown.renter = r.renter;
        shown.provider = r.provider;
        shown.state = state(r);
        shown.outcome = r.outcome;
        shown.reason = r.reason;
        shown.closedBy = r.closedBy;
        shown.budget = r.budget;
        shown.pricePerHour = r.pricePerHour;
        shown.feeBps = r.feeBps;
        shown.fundedSeconds = r.fundedSeconds;
        shown.maxSeconds = r.maxSeconds;
        shown.inspectionSeconds = r.inspectionSeconds;
        shown.createdAt = r.createdAt;
        shown.startBy = uint64(startBy(r));
        shown.startedAt = r.startedAt;
        shown.endsAt = uint64(endsAt(r));
        shown.closedAt = r.closedAt;
        shown.deposit = deposit(r);
        if (shown.state == IRentalEscrow.State.Closed) {
            (shown.paid, shown.fee, shown.refunded) = division(r);
        }
    }
}
