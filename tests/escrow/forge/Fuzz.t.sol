// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "../src/IRentalEscrow.sol";
import {World} from "./World.sol";

/// @title Whatever the numbers are
contract FuzzTest is World {
    /// I2, I3, I10, I15 for one life with one extension, ended at any second by either party.
    function testFuzz_EveryUnitIsPaidOnce(uint96 price, uint32 first, uint32 second, uint32 wait, uint16 fee, bool by)
        external
    {
        price = uint96(bound(price, 0, 1e12));
        first = uint32(bound(first, 1, 30 days));
        second = uint32(bound(second, first + 1, 60 days));
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        (quote.pricePerHour, quote.minSeconds, quote.maxSeconds) = (price, 0, type(uint32).max);
        (quote.feeBps, quote.feeRecipient, quote.inspectionSeconds) = (fee % 1501, feeTaker, 0);
        bytes32 id = create(quote, 1, first);
        vm.prank(provider);
        escrow.activate(id, 0);
        vm.prank(renter);
        escrow.extendTo(id, second, type(uint256).max);
        uint256 deposit = (uint256(price) * second + 3599) / 3600;
        same(escrow.held(), deposit);

        uint256 elapsed = bound(wait, 1, 90 days);
        later(elapsed);
        uint256 owed = uint256(price) * (elapsed < second ? elapsed : second) / 3600;
        same(escrow.accruedOf(id), owed);
        vm.prank(by ? renter : provider);
        escrow.end(id, REPORT);
        uint256 taken = owed * quote.feeBps / 10_000;
        same(escrow.creditOf(provider), owed - taken);
        same(escrow.creditOf(feeTaker), taken);
        same(usdc.balanceOf(renter), PURSE - owed);
        same(escrow.accruedOf(id), owed);
        same(usdc.balanceOf(address(escrow)), escrow.credits());
    }

    /// I16: what statusOf says is what strangers can do.
    function testFuzz_TheStatusSaysWhatAStrangerMayDo(uint32 wait, bool starts) external {
        bytes32 id = create(quoteOf(provider, renter), 1, 3600);
        if (starts) {
            vm.prank(provider);
            escrow.activate(id, 0);
        }
        later(bound(wait, 0, 8000));
        IRentalEscrow.Status status = escrow.statusOf(id);
        vm.prank(STRANGER);
        try escrow.settle(id) {
            same(uint256(status), uint256(IRentalEscrow.Status.Expired));
        } catch {
            require(status != IRentalEscrow.Status.Expired);
        }
        vm.prank(STRANGER);
        try escrow.cancel(id) {
            same(uint256(status), uint256(IRentalEscrow.Status.NoShow));
        } catch {
            require(status != IRentalEscrow.Status.NoShow);
        }
    }

    /// A budget is spent to the unit, and never beyond.
    function testFuzz_ABudgetIsACap(uint96 cap, uint32 first, uint32 second) external {
        cap = uint96(bound(cap, 0, 4_000_000));
        first = uint32(bound(first, 60, 35_999));
        second = uint32(bound(second, first + 1, 36_000));
        openBudget(termsOf(renter, cap));
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        bytes memory signature = signed(provider, escrow.quoteDigest(quote));
        uint256 deposit = (uint256(400_000) * first + 3599) / 3600;
        vm.prank(session);
        try escrow.createFromBudget(0, quote, signature, first, PURSE, 0, anyone) returns (bytes32 id) {
            require(deposit <= cap);
            vm.prank(provider);
            escrow.activate(id, 0);
            uint256 more = (uint256(400_000) * second + 3599) / 3600;
            vm.prank(session);
            try escrow.extendTo(id, second, PURSE) {
                require(more <= cap);
                deposit = more;
            } catch {
                require(more > cap);
            }
        } catch {
            require(deposit > cap);
            deposit = 0;
        }
        same(escrow.budgetOf(renter).left, cap - deposit);
        same(escrow.held(), cap);
    }
}
