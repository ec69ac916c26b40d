// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "../src/IRentalEscrow.sol";
import {World} from "./World.sol";

contract RunningTest is World {
    function extend(bytes32 id, uint32 total, uint256 most) private {
        vm.prank(renter);
        escrow.extendTo(id, total, most);
    }

    function test_RefusesToStartForAStranger() external {
        bytes32 id = create(quoteOf(provider, renter), 1, 60);
        vm.prank(renter);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.NotAllowed.selector, renter));
        escrow.activate(id, 0);
    }

    function test_StartsInTheLastSecond() external {
        bytes32 id = create(quoteOf(provider, renter), 1, 60);
        later(600);
        vm.prank(provider);
        escrow.activate(id, 0);
    }

    function test_RefusesToStartAfterIt() external {
        bytes32 id = create(quoteOf(provider, renter), 1, 60);
        later(601);
        vm.prank(provider);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.TooLate.selector, START + 600, START + 601));
        escrow.activate(id, 0);
    }

    function test_StartsOnce() external {
        bytes32 id = active(1);
        vm.prank(provider);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.WrongState.selector, id, IRentalEscrow.State.Active));
        escrow.activate(id, 0);
    }

    function test_StartsTheClock() external {
        bytes32 id = create(quoteOf(provider, renter), 1, 3600);
        later(300);
        vm.prank(provider);
        escrow.activate(id, REPORT);
        IRentalEscrow.Rental memory r = escrow.rental(id);
        same(r.startedAt, START + 300);
        same(r.endsAt, START + 3900);
        same(r.readyHash, REPORT);
        same(uint256(r.state), uint256(IRentalEscrow.State.Active));
    }

    function test_RefusesToExtendForAStranger() external {
        bytes32 id = active(1);
        vm.prank(provider);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.NotAllowed.selector, provider));
        escrow.extendTo(id, 7200, PURSE);
    }

    function test_ExtendsInTheLastSecond() external {
        bytes32 id = active(1);
        later(3599);
        extend(id, 7200, PURSE);
    }

    function test_RefusesToExtendAfterIt() external {
        bytes32 id = active(1);
        later(3600);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.TooLate.selector, START + 3599, START + 3600));
        extend(id, 7200, PURSE);
    }

    function test_RefusesToExtendTwice() external {
        bytes32 id = active(1);
        extend(id, 7200, PURSE);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.BadSeconds.selector, 7200, 7201, 36_000));
        extend(id, 7200, PURSE);
    }

    function test_RefusesToExtendBeyondTheQuote() external {
        bytes32 id = active(1);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.BadSeconds.selector, 36_001, 3601, 36_000));
        extend(id, 36_001, PURSE);
    }

    function test_RefusesADearerExtension() external {
        bytes32 id = active(1);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.AboveMaximum.selector, 400_000, 399_999));
        extend(id, 7200, 399_999);
    }

    function test_CostsAsMuchAsOneStep() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        quote.pricePerHour = 123_457;
        bytes32 id = create(quote, 1, 61);
        vm.prank(provider);
        escrow.activate(id, 0);
        extend(id, 122, PURSE);
        extend(id, 183, PURSE);
        same(escrow.held(), (uint256(123_457) * 183 + 3599) / 3600);
        same(usdc.balanceOf(renter), PURSE - escrow.held());
    }
}
