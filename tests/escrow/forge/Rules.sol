// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "../src/IRentalEscrow.sol";
import {World} from "./World.sol";

/// @title The rules, as the interface tells them: who may do what, when, and at what price
/// @dev Written from the promises, not from the contract's code. Knows nothing of what was done before.
abstract contract Rules is World {
    // Which rental a step is about.
    enum Wanted {
        Funded,
        Startable,
        Inspected,
        Active,
        Expired,
        Running,
        Closed
    }

    IRentalEscrow.State internal constant IS_CLOSED = IRentalEscrow.State.Closed;
    IRentalEscrow.State internal constant IS_ACTIVE = IRentalEscrow.State.Active;
    IRentalEscrow.State internal constant IS_FUNDED = IRentalEscrow.State.Funded;

    function people() public view returns (address[7] memory) {
        return [renter, otherRenter, provider, otherProvider, feeTaker, session, STRANGER];
    }

    function _ahead(uint256 price, uint256 seconds_) internal pure returns (uint256) {
        return (price * seconds_ + 3599) / 3600;
    }

    /// @dev Whether the session may act for the renter of this rental: there is one key, but budgets pass.
    function _forRenter(IRentalEscrow.Rental memory r) internal view returns (bool) {
        return r.budget != 0 && r.budget == escrow.budgetOf(r.renter).number;
    }

    function _isParty(address who, IRentalEscrow.Rental memory r) internal view returns (bool) {
        return who == r.renter || who == r.provider || (who == session && _forRenter(r));
    }

    function _pays(address owner, uint256 amount) internal view returns (bool) {
        IRentalEscrow.Budget memory b = escrow.budgetOf(owner);
        return block.timestamp < b.expiry && amount <= b.left;
    }

    function _spendable(address owner) internal view returns (bool) {
        return _pays(owner, _ahead(400_000, 61));
    }

    function _moves(address who) internal view returns (bool) {
        return !usdc.paused() && !usdc.isBlacklisted(who);
    }

    function _fits(IRentalEscrow.Rental memory r, Wanted wanted) internal view returns (bool) {
        if (wanted == Wanted.Funded) return r.state == IS_FUNDED;
        if (wanted == Wanted.Closed) return r.state == IS_CLOSED;
        if (wanted == Wanted.Startable) return r.state == IS_FUNDED && block.timestamp <= r.startBy;
        if (r.state != IS_ACTIVE) return false;
        if (wanted == Wanted.Inspected) return block.timestamp <= uint256(r.startedAt) + r.inspectionSeconds;
        if (wanted == Wanted.Active) return block.timestamp < r.endsAt && r.fundedSeconds < r.maxSeconds;
        return wanted == Wanted.Running || block.timestamp >= r.endsAt;
    }

    function _caller(IRentalEscrow.Rental memory r, uint256 by) internal view returns (address) {
        if (by % 8 == 0) return people()[by / 8 % 7];
        return by % 2 == 0 ? r.provider : by % 8 == 1 && _forRenter(r) ? session : r.renter;
    }

    function _renter(uint256 who) internal view returns (address) {
        return who % 2 == 0 ? renter : otherRenter;
    }

    function _provider(uint256 from) internal view returns (address) {
        return from % 2 == 0 ? provider : otherProvider;
    }
}
