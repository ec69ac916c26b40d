// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {ESCROW} from "../src/Code.sol";
import {IRentalEscrow} from "../src/IRentalEscrow.sol";

interface Cheats {
    function prank(address sender) external;
    function warp(uint256 time) external;
    function assume(bool condition) external;
}

/// @dev A token as the escrow assumes it to be, and no more of one.
contract PlainToken {
    mapping(address => uint256) public balanceOf;

    function mint(address to, uint256 amount) external {
        balanceOf[to] += amount;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) public returns (bool) {
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        return true;
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 amount,
        uint256,
        uint256,
        bytes32,
        bytes calldata
    ) external {
        transferFrom(from, to, amount);
    }
}

/// @dev A provider with code, so that its signature is not the subject of the proof.
contract Agreeable {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        return 0x1626ba7e;
    }
}

/// @title Three properties of the money, of the shipped bytes (halmos)
/// @dev For every moment, caller and argument that is not written down here. Prices and lengths are: a solver does not
/// come to an end over products of two unknowns. A call that reverts proves nothing here: that closing never does, and
/// whatever the numbers and fees are, is for the fuzz tests, the invariants and the state machine.
contract Proof {
    Cheats private constant vm = Cheats(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);
    uint256 private constant START = 1_900_000_000;
    address private constant RENTER = address(0x1001);
    address private constant OTHER = address(0x1002);
    address private constant THIRD = address(0x1003);
    address private constant SESSION = address(0x1004);

    PlainToken private token;
    IRentalEscrow private escrow;
    address private provider;
    bytes32 private id;

    function setUp() public {
        vm.warp(START);
        token = new PlainToken();
        escrow = IRentalEscrow(_deploy(abi.encodePacked(ESCROW, abi.encode(address(token)))));
        provider = address(new Agreeable());
        token.mint(RENTER, 1e12);
        token.mint(OTHER, 1e12);
        token.mint(THIRD, 1e12);
        _rent(OTHER, 77_777, 3600);
        bytes32 over = _rent(THIRD, 3600, 3600);
        vm.warp(START + 100);
        vm.prank(THIRD);
        escrow.end(over, 0);
        vm.warp(START);
        escrow.openBudget(IRentalEscrow.BudgetTerms(OTHER, SESSION, 5000, 0, uint40(START + 1000), 0, 0), "");
        assert(escrow.creditOf(provider) == 100);
    }

    /// 1. Conservation: what a rental took in is what it pays out, to the unit, and nobody else's money is touched.
    function check_EveryUnitComesOut(uint32 elapsed, bool byRenter) external {
        id = _rent(RENTER, 400_001, 3601);
        uint256 held = escrow.held();
        uint256 deposit = escrow.rental(id).deposit;
        vm.warp(START + elapsed);
        vm.prank(byRenter ? RENTER : provider);
        escrow.end(id, 0);
        IRentalEscrow.Rental memory r = escrow.rental(id);
        assert(uint256(r.paid) + r.fee + r.refunded == deposit);
        assert(escrow.held() == held - deposit);
        assert(escrow.creditOf(provider) == 100 + r.paid);
        assert(token.balanceOf(RENTER) == 1e12 - deposit + r.refunded);
        assert(token.balanceOf(address(escrow)) == escrow.held() + escrow.credits());
    }

    /// 2. Nobody but the parties ends a rental while its time runs.
    function check_OnlyThePartiesEnd(address caller, uint32 elapsed) external {
        id = _rent(RENTER, 400_001, 3601);
        vm.assume(elapsed < 3601);
        vm.assume(caller != RENTER && caller != provider);
        vm.warp(START + elapsed);
        vm.prank(caller);
        (bool ended,) = address(escrow).call(abi.encodeCall(escrow.end, (id, 0)));
        vm.prank(caller);
        (bool settled,) = address(escrow).call(abi.encodeCall(escrow.settle, (id)));
        vm.prank(caller);
        (bool rejected,) = address(escrow).call(abi.encodeCall(escrow.reject, (id, 0, 0)));
        vm.prank(caller);
        (bool cancelled,) = address(escrow).call(abi.encodeCall(escrow.cancel, (id)));
        assert(!ended && !settled && !rejected && !cancelled);
    }

    /// 3. No outsider takes anything out, whichever function it calls, at whatever time: deposits, credits and a budget
    /// lie there.
    function check_NoOutsiderIsPaid(address caller, uint8 which, uint40 time, bytes32 word, bool providers) external {
        id = _rent(RENTER, 400_001, 3601);
        vm.assume(caller != RENTER && caller != provider && caller != OTHER && caller != address(escrow));
        vm.assume(caller != THIRD && caller != SESSION);
        address owner = providers ? provider : OTHER;
        vm.assume(time >= START);
        vm.warp(time);
        vm.prank(caller);
        address(escrow).call(_call(which, word, owner));
        assert(token.balanceOf(caller) == 0);
        assert(escrow.creditOf(caller) == 0);
        assert(token.balanceOf(address(escrow)) == escrow.held() + escrow.credits());
    }

    function _call(uint8 which, bytes32 word, address owner) private view returns (bytes memory) {
        if (which == 0) return abi.encodeCall(escrow.end, (id, word));
        if (which == 1) return abi.encodeCall(escrow.settle, (id));
        if (which == 2) return abi.encodeCall(escrow.cancel, (id));
        if (which == 3) return abi.encodeCall(escrow.reject, (id, 1, word));
        if (which == 4) return abi.encodeCall(escrow.withdrawFor, (owner));
        if (which == 5) return abi.encodeCall(escrow.closeBudget, (owner));
        if (which == 6) return abi.encodeCall(escrow.activate, (id, word));
        if (which == 7) return abi.encodeCall(escrow.extendTo, (id, 7200, type(uint256).max));
        return abi.encodeCall(escrow.withdraw, ());
    }

    function _deploy(bytes memory code) private returns (address made) {
        assembly ("memory-safe") {
            made := create(0, add(code, 32), mload(code))
        }
        assert(made != address(0));
    }

    function _rent(address renter, uint96 price, uint32 seconds_) private returns (bytes32 made) {
        IRentalEscrow.Quote memory quote = IRentalEscrow.Quote({
            provider: provider,
            renter: renter,
            offerId: 0,
            specHash: 0,
            pricePerHour: price,
            feeBps: 0,
            feeRecipient: address(0),
            minSeconds: 60,
            maxSeconds: 36_000,
            startWindow: 600,
            inspectionSeconds: 0,
            validUntil: uint64(START + 600),
            salt: bytes32(uint256(price))
        });
        vm.prank(renter);
        made = escrow.create(bytes32(uint256(1)), quote, "", seconds_, 1e12, 0);
        vm.prank(provider);
        escrow.activate(made, 0);
    }
}
